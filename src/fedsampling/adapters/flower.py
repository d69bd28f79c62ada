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

from collections import defaultdict, deque
from collections.abc import Iterable
from logging import WARNING
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


class SchemeStrategy(FedAvg):
    """Federated averaging with nodes selected and weighed by a sampler; evaluation is Flower's.

    The model is updated by η_g Σ ω_i (θ_i − θ).  A node that is selected twice trains twice; a node
    that fails counts as a zero update.  Each node's app answers these messages:

    =================  ===========================================================================
    ``train``          as in FedAvg; with ``work-loss`` in its metrics if the sampler needs
                       ``work_losses``: the root mean square of the losses of its mini-batches
    ``query``          once, before the first round: ``num-examples``; ``client``, a number that
                       orders the nodes and is the same in every run (without it, the node's);
                       ``label`` or ``delay`` if the sampler needs ``labels`` or ``delays``
    ``query.losses``   before each round, if the sampler needs ``losses``: ``loss``, at the arrays
                       that the message holds
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
        Time limit in seconds for nodes to answer a query.
    **options
        Arguments of Flower's ``FedAvg``, except ``fraction_train`` and ``min_train_nodes``.  The
        first round waits for ``min_available_nodes`` nodes; nodes that connect later are not used.
    """

    def __init__(
        self,
        scheme: Scheme,
        seed: int = 0,
        server_step: float = 1.0,
        timeout: float = 3600,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.scheme, self.seed, self.server_step = scheme, seed, server_step
        self.timeout = timeout
        self._nodes: list[int] = []

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send each selected node one train message per slot."""
        if not self._nodes:
            self._prepare(grid, arrays)
        connected = set(grid.get_node_ids())
        offered = [client for client, node in enumerate(self._nodes) if node in connected]
        losses = self._losses(grid, arrays, offered) if "losses" in self.scheme.needs else None
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
            )
            for slot, node in enumerate(self._selected)
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add the weighted updates to the model."""
        valid, failed = self._check_and_log_replies(list(replies), is_train=True)
        if missing := len(self._selected) - len(valid):
            reasons = {reply.error.reason.strip().splitlines()[-1] for reply in failed}
            why = "; ".join(sorted(reasons)) or "no answer"
            log(WARNING, "%s of %s updates count as zero: %s", missing, len(self._selected), why)
        slots_of: dict[int, deque[int]] = defaultdict(deque)
        for slot, node in enumerate(self._selected):
            slots_of[node].append(slot)
        updates = np.zeros((len(self._selected), _flat(self._before).size), np.float32)
        work_losses = np.zeros(len(self._selected))
        before = _flat(self._before)
        for reply in valid:
            slot = slots_of[reply.metadata.src_node_id].popleft()
            trained = next(iter(reply.content.array_records.values()))
            parameters = {name: trained[name].numpy() for name in self._before}
            updates[slot] = _flat(parameters) - before
            if "work_losses" in self.scheme.needs:
                work_losses[slot] = _metric(reply, "work-loss")
        omega = self.server_step * self._cohort.weigh(updates, work_losses)
        moved = before + omega.astype(np.float32) @ updates
        metrics = None
        if valid:
            contents = [reply.content for reply in valid]
            metrics = self.train_metrics_aggr_fn(contents, self.weighted_by_key)
        return _record(moved, self._before), metrics

    def _prepare(self, grid: Grid, arrays: ArrayRecord) -> None:
        """Wait for the nodes, sort them, and prepare the sampler with their answers."""
        count = self.min_available_nodes
        _, nodes = sample_nodes(grid, count, count)
        replies = self._query(grid, nodes, "query", RecordDict())
        number = {node: replies[node].get("client", node) for node in nodes}
        self._nodes = sorted(nodes, key=lambda node: number[node])
        facts = {
            f"{name}s": [_metric(replies[node], name) for node in self._nodes]
            for name in ("label", "delay")
            if f"{name}s" in self.scheme.needs
        }
        sizes = [int(_metric(replies[node], self.weighted_by_key)) for node in self._nodes]
        dimension = sum(array.numpy().size for array in arrays.values())
        self._cohort = Cohort(self.scheme, sizes, dimension, self.seed, **facts)

    def _losses(self, grid: Grid, arrays: ArrayRecord, offered: list[int]) -> list[float]:
        """Query the available nodes' losses at the model; NaN for the others."""
        nodes = [self._nodes[client] for client in offered]
        replies = self._query(
            grid, nodes, "query.losses", RecordDict({self.arrayrecord_key: arrays})
        )
        return [
            float(_metric(replies[node], "loss")) if node in replies else np.nan
            for node in self._nodes
        ]

    def _query(
        self, grid: Grid, nodes: list[int], kind: str, content: RecordDict
    ) -> dict[int, MetricRecord]:
        """Return the metrics in each node's answer."""
        messages = [Message(content, message_type=kind, dst_node_id=node) for node in nodes]
        answers = {
            reply.metadata.src_node_id: reply
            for reply in grid.send_and_receive(messages, timeout=self.timeout)
        }
        for node in nodes:
            if node not in answers or answers[node].has_error():
                why = f": {answers[node].error.reason}" if node in answers else ""
                raise InputError(
                    f"node {node}: no answer to {kind!r}{why}; "
                    "add a function for it to the client app"
                )
        return {
            node: next(iter(reply.content.metric_records.values()), MetricRecord())
            for node, reply in answers.items()
        }


def _metric(record: Any, name: str) -> Any:
    """Return a required metric of a node's answer."""
    if isinstance(record, Message):
        record = next(iter(record.content.metric_records.values()))
    if name not in record:
        raise InputError(f"{name}: missing in a node's answer, but the sampler needs it; add it")
    return record[name]


def _flat(arrays: dict[str, Any]) -> Any:
    """Join arrays into one vector."""
    return np.concatenate([array.ravel() for array in arrays.values()]).astype(np.float32)


def _record(flat: Any, like: dict[str, Any]) -> ArrayRecord:
    """Split a vector into arrays."""
    ends = np.cumsum([array.size for array in like.values()])[:-1]
    return ArrayRecord(
        {
            name: Array(np.asarray(part.reshape(array.shape), array.dtype))
            for (name, array), part in zip(like.items(), np.split(flat, ends), strict=True)
        }
    )
