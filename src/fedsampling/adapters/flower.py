"""A Flower strategy: a sampler selects the nodes of a round and weighs their updates.

``pip install 'fedsampling[flower]'``.  On the server this is one line; the client's app reports its
number of samples once::

    strategy = SchemeStrategy(fs.scheme("clustered_similarity", m=10), min_available_nodes=100)
    strategy.start(grid, arrays, num_rounds=200)

    @app.query()
    def about(message, context):
        facts = MetricRecord({"num-examples": 600, "client": context.node_config["partition-id"]})
        return Message(RecordDict({"about": facts}), reply_to=message)
"""

import time
from collections.abc import Iterable, Sequence
from logging import INFO, WARNING
from typing import Any

import numpy as np

from fedsampling.adapters.cohort import Cohort
from fedsampling.base.errors import InputError
from fedsampling.samplers.protocol.base import Scheme

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import FedAvg
    from flwr.serverapp.strategy.strategy_utils import sample_nodes
    from flwr.supercore import log
except ImportError as error:
    raise ImportError(f"{error}; pip install 'fedsampling[flower]'") from None


# Last parts of the names of BatchNorm's buffers, in PyTorch.
BATCH_NORM = frozenset({"running_mean", "running_var", "num_batches_tracked"})
ADVICE = "add a function for it to the client app, or set a longer timeout"


class SchemeStrategy(FedAvg):
    """Federated averaging with nodes selected and weighed by a sampler; evaluation is Flower's.

    The model is updated by η_g Σ ω_i (θ_i − θ), and its buffers are averaged.  A node that is
    selected twice trains twice.  The sampler does not see nodes that fail, and the weights of the
    others are corrected, as in ``fs.train`` with a trace of ``failures``.  Each node's app answers
    these messages:

    =================  ===========================================================================
    ``train``          as in FedAvg; with ``work-loss`` in its metrics if the sampler needs
                       ``work_losses``: the root mean square of the losses of its mini-batches
    ``query``          once, before the first round: ``num-examples``; ``client``, a number that
                       orders the nodes and is the same in every run (without it, the node's);
                       ``label`` or ``delay`` if the sampler needs ``labels`` or ``delays``
    ``query.losses``   before each round, if the sampler needs ``losses``: ``loss``, at the arrays
                       that the message holds; nodes that fail are not available in the round
    =================  ===========================================================================

    Parameters
    ----------
    scheme : Scheme
        A sampler that needs at most ``losses``, ``updates``, ``update_norms``, ``work_losses``,
        ``delays`` and ``labels``.
    seed : int
        Seed of the selection.
    server_step : float
        η_g.
    timeout : float
        Time limit in seconds for nodes to answer a query, and for one of them to be connected at
        the start of a round.  The limit for training is an argument of ``start``.
    buffers : sequence of str
        Names of arrays that are not parameters.  Integers and the running statistics of BatchNorm
        need no name.  Samplers do not see buffers; the server averages them with the positive ω_i
        divided by their sum.
    **options
        Arguments of Flower's ``FedAvg``, except ``fraction_train`` and ``min_train_nodes``.  The
        first round waits for ``min_available_nodes`` nodes (2 by default); nodes that connect later
        are not used.  Each ``start`` is a new training.
    """

    def __init__(
        self,
        scheme: Scheme,
        seed: int = 0,
        server_step: float = 1.0,
        timeout: float = 3600,
        buffers: Sequence[str] = (),
        **options: Any,
    ) -> None:
        for name in ("fraction_train", "min_train_nodes"):
            if name in options:
                raise InputError(f"{name}: no effect, as the sampler selects the nodes; remove it")
        super().__init__(**options)
        self.scheme, self.seed, self.server_step = scheme, seed, server_step
        self.timeout, self.buffers = timeout, [*buffers]

    def summary(self) -> None:
        """Log the sampler, and how many nodes there must be."""
        log(INFO, "\t├──> Sampler: %r, seed %s", self.scheme, self.seed)
        log(INFO, "\t├──> Minimum available nodes: %d", self.min_available_nodes)
        log(INFO, "\t└──> Fraction of nodes that evaluate: %.2f", self.fraction_evaluate)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send each selected node one train message per slot."""
        if server_round == 1:
            self._prepare(grid, arrays)
        offered, losses = self._connected(grid), None
        if "losses" in self.scheme.needs:
            offered, losses = self._losses(grid, arrays, offered)
        clients = self._cohort.select(server_round - 1, offered, losses)
        self._before = {name: array.numpy() for name, array in arrays.items()}
        self._selected = [self._nodes[client] for client in clients]
        return [
            Message(
                RecordDict(
                    {
                        self.arrayrecord_key: arrays,
                        self.configrecord_key: ConfigRecord(
                            {**config, "server-round": server_round, "slot": slot}
                        ),
                    }
                ),
                message_type="train",
                dst_node_id=node,
                group_id=str(slot),  # replies have it, too
            )
            for slot, node in enumerate(self._selected)
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add the weighted updates to the model."""
        valid, failed = self._check_and_log_replies(list(replies), is_train=True)
        k = len(self._selected)
        if missing := k - len(valid):
            why = "; ".join(sorted({_reason(reply) for reply in failed})) or "no answer"
            log(WARNING, "%s of %s updates are missing: %s", missing, k, why)
        trained = {
            int(reply.metadata.group_id): next(iter(reply.content.array_records.values()))
            for reply in valid
        }
        before = _flat(self._before, self._parameters)
        updates = np.zeros((k, before.size), np.float32)
        for slot, record in trained.items():
            updates[slot] = _flat(_numpy(record, self._parameters), self._parameters) - before
        work_losses = np.zeros(k)
        if "work_losses" in self.scheme.needs:
            for reply in valid:
                work_losses[int(reply.metadata.group_id)] = _metric(reply, "work-loss")
        reported = [slot in trained for slot in range(k)]
        omega = self._cohort.weigh(updates, work_losses, reported)
        moved = before + (self.server_step * omega).astype(np.float32) @ updates
        arrays = _split(moved, {name: self._before[name] for name in self._parameters})
        positive = np.maximum(omega, 0)
        shares = positive / max(positive.sum(), 1e-300)
        for name, array in self._before.items():
            if name not in arrays:
                change = sum(
                    shares[slot] * (record[name].numpy() - array.astype(np.float64))
                    for slot, record in trained.items()
                )
                arrays[name] = _as(array + change, array.dtype)
        metrics = None
        if valid:
            contents = [reply.content for reply in valid]
            metrics = self.train_metrics_aggr_fn(contents, self.weighted_by_key)
        return ArrayRecord({name: Array(arrays[name]) for name in self._before}), metrics

    def _prepare(self, grid: Grid, arrays: ArrayRecord) -> None:
        """Wait for the nodes, sort them, and prepare the sampler with their answers."""
        if unknown := sorted({*self.buffers} - {*arrays}):
            raise InputError(f"buffers: {unknown[0]!r} is not the name of an array; correct it")
        self._parameters = [
            name
            for name, array in arrays.items()
            if name not in self.buffers
            and name.rpartition(".")[2] not in BATCH_NORM
            and array.numpy().dtype.kind == "f"
        ]
        count = self.min_available_nodes
        _, nodes = sample_nodes(grid, count, count)
        replies, failed = self._query(grid, nodes, "query", RecordDict())
        for node, why in failed.items():
            raise InputError(f"node {node}: no answer to 'query': {why}; {ADVICE}")
        number = {node: replies[node].get("client", node) for node in nodes}
        self._nodes = sorted(nodes, key=lambda node: number[node])
        facts = {
            f"{name}s": [_metric(replies[node], name) for node in self._nodes]
            for name in ("label", "delay")
            if f"{name}s" in self.scheme.needs
        }
        sizes = [int(_metric(replies[node], self.weighted_by_key)) for node in self._nodes]
        dimension = sum(arrays[name].numpy().size for name in self._parameters)
        self._cohort = Cohort(self.scheme, sizes, dimension, self.seed, **facts)

    def _connected(self, grid: Grid) -> list[int]:
        """Return the clients whose nodes are connected; wait for one."""
        end = time.monotonic() + self.timeout
        while True:
            connected = set(grid.get_node_ids())
            if offered := [k for k, node in enumerate(self._nodes) if node in connected]:
                return offered
            if time.monotonic() > end:
                raise InputError(
                    f"nodes: none of the {len(self._nodes)} nodes of the first round is connected; "
                    "restart them, or set a longer timeout"
                )
            time.sleep(1)

    def _losses(
        self, grid: Grid, arrays: ArrayRecord, offered: list[int]
    ) -> tuple[list[int], list[float]]:
        """Query the available nodes' losses at the model; return who answered, and all losses."""
        nodes = [self._nodes[client] for client in offered]
        replies, failed = self._query(
            grid, nodes, "query.losses", RecordDict({self.arrayrecord_key: arrays})
        )
        why = "; ".join(sorted({*failed.values()}))
        if not replies:
            raise InputError(f"nodes: no answer to 'query.losses': {why}; {ADVICE}")
        if failed:
            log(WARNING, "%s of %s nodes are left out: %s", len(failed), len(nodes), why)
        losses = [
            float(_metric(replies[node], "loss")) if node in replies else np.nan
            for node in self._nodes
        ]
        return [client for client in offered if self._nodes[client] in replies], losses

    def _query(
        self, grid: Grid, nodes: list[int], kind: str, content: RecordDict
    ) -> tuple[dict[int, MetricRecord], dict[int, str]]:
        """Return the metrics in each node's answer, and why others have none, by node."""
        messages = [Message(content, message_type=kind, dst_node_id=node) for node in nodes]
        answers = {
            reply.metadata.src_node_id: reply
            for reply in grid.send_and_receive(messages, timeout=self.timeout)
        }
        failed = {
            node: _reason(answers[node]) if node in answers else "no answer"
            for node in nodes
            if node not in answers or answers[node].has_error()
        }
        metrics = {
            node: next(iter(answers[node].content.metric_records.values()), MetricRecord())
            for node in nodes
            if node not in failed
        }
        return metrics, failed


def _reason(reply: Message) -> str:
    """Return the last line of an error reply; apps may give no reason."""
    lines = (reply.error.reason or "").strip().splitlines()
    return lines[-1] if lines else "no reason"


def _metric(record: Any, name: str) -> Any:
    """Return a required metric of a node's answer."""
    if isinstance(record, Message):
        record = next(iter(record.content.metric_records.values()))
    if name not in record:
        raise InputError(f"{name}: missing in a node's answer, but the sampler needs it; add it")
    return record[name]


def _numpy(arrays: ArrayRecord, names: list[str]) -> dict[str, Any]:
    return {name: arrays[name].numpy() for name in names}


def _flat(arrays: dict[str, Any], names: list[str]) -> Any:
    """Join arrays into one vector."""
    return np.concatenate([arrays[name].ravel() for name in names]).astype(np.float32)


def _split(flat: Any, like: dict[str, Any]) -> dict[str, Any]:
    """Split a vector into arrays."""
    ends = np.cumsum([array.size for array in like.values()])[:-1]
    return {
        name: _as(part.reshape(array.shape), array.dtype)
        for (name, array), part in zip(like.items(), np.split(flat, ends), strict=True)
    }


def _as(values: Any, dtype: Any) -> Any:
    """Convert an array; averages of integers are rounded."""
    return np.asarray(values if dtype.kind == "f" else np.rint(values), dtype)
