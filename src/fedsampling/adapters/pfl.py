"""A cohort sampler for pfl-research: a sampler selects the users of an iteration and weighs them.

``pip install 'fedsampling[pfl]'``.  One object is the training data and the last postprocessor::

    cohorts = SchemeCohorts(fs.scheme("clustered_similarity", m=10), make_dataset, sizes, 39_760)
    backend = SimulatedBackend(cohorts, val_data, postprocessors=[cohorts])
    FederatedAveraging().run(params, backend, model, train_params, eval_params)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.adapters.cohort import Cohort
from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing
from fedsampling.samplers.protocol.base import Scheme

try:
    from pfl.common_types import Saveable
    from pfl.data.federated_dataset import FederatedDatasetBase
    from pfl.exception import CheckpointNotFoundError
    from pfl.internal.ops.selector import get_default_framework_module
    from pfl.metrics import Metrics
    from pfl.postprocessor.base import Postprocessor
except ImportError as error:
    raise ImportError(f"{error}; pip install 'fedsampling[pfl]'") from None


STATE, ROUNDS = "fedsampling-cohorts.npz", "finished rounds"


class SchemeCohorts(FederatedDatasetBase, Postprocessor, Saveable):
    """The users of each central iteration, as selected by a sampler, and their weights.

    The sampler determines the number of users; ``train_cohort_size`` is ignored.  The updates of a
    cohort are collected, and their sum Σ ω_i (θ_i − θ) replaces the backend's.  This must therefore
    be the last postprocessor.  If a sampler selects nobody, one user trains with weight zero.

    Of a mechanism for differential privacy, users' updates are clipped before they are weighed, and
    the noise is divided by the number of users, as in pfl's ``FederatedAveraging``.  The privacy
    that pfl computes does not hold: it assumes users drawn uniformly and weighed equally.

    To resume a training, pass the object to pfl's ``RestoreTrainingCallback``, next to algorithm
    and model.  Each training needs a new object.

    Parameters
    ----------
    scheme : Scheme
        A sampler that needs at most ``losses``, ``updates``, ``update_norms``, ``delays`` and
        ``labels``.
    make_dataset_fn : callable
        As in pfl's ``FederatedDataset``: maps a user's id to the user's dataset.
    n_samples : mapping
        Number of samples of each user, by id; the order of the ids defines the clients' numbers.
    dimension : int
        Number of the model's parameters.
    seed : int
        Seed of the selection.
    losses : callable, optional
        Returns each user's training loss at the current model, shape (n,); called before each
        iteration if the sampler needs ``losses``.
    labels, delays : sequence, optional
        As in :class:`fedsampling.adapters.cohort.Cohort`.
    """

    def __init__(
        self,
        scheme: Scheme,
        make_dataset_fn: Callable[[Any], Any],
        n_samples: Mapping[Any, int],
        dimension: int,
        seed: int = 0,
        losses: Callable[[], ArrayLike] | None = None,
        labels: Sequence[int] | None = None,
        delays: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if "work_losses" in scheme.needs:
            raise InputError(
                f"scheme: {scheme.named} needs work_losses, which pfl does not report; "
                "use another sampler, or fedsampling.train"
            )
        if "losses" in scheme.needs and losses is None:
            raise InputError(f"losses: missing, and {scheme.named} needs them; add it")
        if get_default_framework_module().distributed.world_size > 1:
            raise InputError(
                "processes: a sampler needs all users of an iteration at once; use one process"
            )
        self._make, self._users, self._losses = make_dataset_fn, [*n_samples], losses
        sizes = [*n_samples.values()]
        self._cohort = Cohort(scheme, sizes, dimension, seed, labels=labels, delays=delays)
        self._iteration, self._restored = 0, False
        self._updates: list[Any] = []

    def __next__(self) -> tuple[Any, int]:
        """Return a random user, for callers that do not use cohorts."""
        seed = self._get_seed()
        return self._make(self._users[seed % len(self._users)]), seed

    def get_cohort(self, cohort_size: int) -> Iterator[tuple[Any, int]]:
        """Yield the datasets of the selected users."""
        losses = self._losses() if self._losses else None
        self._clients = self._cohort.select(self._iteration, losses=losses)
        self._iteration += 1
        self._updates = []
        for client in self._clients or [0]:
            yield self._make(self._users[client]), self._get_seed()
        if not self._updates:
            raise InputError(
                "postprocessors: the cohorts are missing, so their weights would have no effect; "
                "pass them to the backend as the last of its postprocessors"
            )

    def save(self, dir_path: str) -> None:
        """Save the number of rounds and what the sampler remembers; called by pfl's callback."""
        arrays = {**self._cohort.saved(), ROUNDS: np.array(self._iteration)}
        with replacing(Path(dir_path) / STATE) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    def load(self, dir_path: str) -> None:
        """Restore the result of :meth:`save`."""
        if not (path := Path(dir_path) / STATE).exists():
            raise CheckpointNotFoundError(str(path))
        with np.load(path, allow_pickle=False) as file:
            saved = dict(file)
        self._iteration, self._restored = int(saved.pop(ROUNDS)), True
        self._cohort.restore(saved)

    def postprocess_one_user(self, *, stats: Any, user_context: Any) -> tuple[Any, Any]:
        """Collect a user's update."""
        _, parts = stats.get_weights()
        to_numpy = get_default_framework_module().to_numpy
        arrays = [np.array(to_numpy(part), np.float32).ravel() for part in parts]
        self._updates.append(np.concatenate(arrays) / np.float32(stats.weight))
        return stats, Metrics()

    def postprocess_server(
        self, *, stats: Any, central_context: Any, aggregate_metrics: Any
    ) -> tuple[Any, Any]:
        """Replace the backend's sum by the sum of the weighted updates."""
        ops = get_default_framework_module()
        now = central_context.current_central_iteration
        if self._iteration <= now:
            raise InputError(
                f"iteration {now}: the sampler is only in round {self._iteration - 1}; to resume, "
                "pass the cohorts to RestoreTrainingCallback, and save every iteration"
            )
        if now == 0 and self._iteration > 1 and not self._restored:
            raise InputError("cohorts: used by another training; create new ones for this one")
        updates = np.stack(self._updates)[: len(self._clients)]
        omega = self._cohort.weigh(updates).astype(np.float32)
        k = np.float32(len(self._updates))
        _, parts = stats.get_weights()
        shapes = [tuple(ops.get_shape(part)) for part in parts]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        moved = [
            ops.to_tensor(part.reshape(shape))
            for part, shape in zip(np.split(k * (omega @ updates), ends), shapes, strict=True)
        ]
        # The backend divides by k: also noise that mechanisms for differential privacy add.
        return stats.from_weights(ops.to_tensor(np.full(1, k)), moved), Metrics()
