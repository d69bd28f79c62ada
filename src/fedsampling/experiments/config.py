"""The user's settings: the typed model behind ``config.yaml``.

``fedsampling schema`` generates the documented ``config.yaml`` of the repository and
``workflow/schemas/*.json`` from this model; a test checks that they agree.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from fedsampling.base.code import allow
from fedsampling.base.errors import InputError, gathering, naming
from fedsampling.base.record_errors import short
from fedsampling.base.records import Strict, check, distinct
from fedsampling.base.yaml_reading import read_yaml
from fedsampling.data.sources.mirrors import folder
from fedsampling.samplers.users.files import load_file

MIRROR_VARIABLE = "FEDSAMPLING_MIRROR"
PRODUCTS_VARIABLE = "FEDSAMPLING_PRODUCTS"
# Keys that describe a machine: no result depends on them, and reports do not show them.
MACHINE_KEYS = frozenset({"mirror", "reuse", "store", "cluster"})
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
# Folders of results and logs: a run cannot have these names.
RESERVED_NAMES = frozenset(
    [
        *("artefacts", "benchmarks", "cards", "checkpoints", "claims", "claims_unfinished"),
        *("compare", "data", "explorer", "export", "gpus", "made", "report", "runs"),
        *("store", "summaries", "tune", "unfinished"),
        *("card", "draw", "fetch", "simulate", "slurm"),
    ]
)
# Suffixes of files next to these folders.
RESERVED_SUFFIXES = (".json", ".log", ".parquet", ".lock", ".tmp")
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4095  # limits of common file systems
# Characters that SLURM accepts in partitions (separated by commas) and GPU models.  The plugin
# passes these values to a shell, so nothing else is allowed; of models, it accepts fewer names.
SITE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.,:+-]{0,99}$"
GPU_MODEL = r"[A-Za-z0-9_.]+"


def _path(path: str) -> str:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError(f"{short(path)} is invalid; must be without NUL")
    if len(encoded) > MAX_PATH_BYTES or any(
        len(part) > MAX_NAME_BYTES for part in encoded.split(b"/")
    ):
        raise ValueError(
            f"{short(path)} is too long; must have at most {MAX_NAME_BYTES} bytes between slashes "
            f"and {MAX_PATH_BYTES} in all"
        )
    return path


Name = Annotated[str, Field(pattern=NAME)]
SiteName = Annotated[str, Field(pattern=SITE_NAME)]
PathText = Annotated[str, AfterValidator(_path)]


class Cluster(Strict):
    """Resources that jobs may request from a cluster; local runs only count GPUs."""

    gpu: Literal["none", "gpu", "gres", "shard"] = Field(
        "none",
        description="How jobs request a GPU. none: never; gpu: with --gpus (local runs then start "
        "at most N jobs with a GPU with --resources gpu=N); gres: with --gres, for sites that "
        "accept only this; shard: a share of a GPU with --gres=shard:1.",
    )
    jobs_per_gpu: Literal[1, 2, 4, 8, "auto"] = Field(
        1,
        description="Jobs that share a GPU in local runs; with gpu: shard, the number of shards of "
        "a GPU, which must be given. auto: in local runs, by the memory and launches that "
        "`fedsampling plan` predicts for each job.",
    )
    gpu_model: SiteName | None = Field(
        None, description="GPU model to request, by the site's name; null: any."
    )
    cpu_partition: SiteName | None = Field(
        None, description="Partition for jobs without a GPU; null: the site's default."
    )
    gpu_partition: SiteName | None = Field(None, description="Partition for jobs with a GPU.")
    margin: float = Field(
        2.0,
        ge=1,
        description="Safety factor: a job requests its estimated time times this factor, and more "
        "on each retry.",
    )
    max_runtime: int = Field(
        1440,
        ge=1,
        description="Maximum time in minutes that a job may request. A longer job with "
        "checkpoints stops before the limit, is requeued and resumes.",
    )
    max_mem_mb: int = Field(
        64000, ge=100, description="Maximum memory in MB that a job may request."
    )
    grace: float = Field(
        120.0,
        ge=0,
        description="Seconds before its time limit at which a job saves a checkpoint and stops.",
    )

    @model_validator(mode="after")
    def _with_effect(self) -> "Cluster":
        if self.gpu_model is not None and self.gpu in ("none", "shard"):
            raise ValueError(
                f"gpu_model: has no effect with gpu: {self.gpu}; use gpu: gpu or gres, or remove it"
            )
        if self.gpu_model is not None and not re.fullmatch(GPU_MODEL, self.gpu_model):
            raise ValueError(
                f"gpu_model: '{self.gpu_model}' is invalid for Snakemake's SLURM plugin, which "
                "takes letters, digits, '_' and '.' only; use null, with a gpu_partition of these "
                "GPUs"
            )
        if self.gpu == "shard" and self.jobs_per_gpu in (1, "auto"):
            raise ValueError(
                f"jobs_per_gpu: must be the number of shards of a GPU (2, 4 or 8) with gpu: shard, "
                f"not {self.jobs_per_gpu}; each job then uses its share of the memory"
            )
        return self


class Report(Strict):
    """Where the report is published."""

    address: str | None = Field(
        None,
        pattern=r"^https?://[^\s<>\"]+$",
        description="Address under which the report is published, such as "
        "https://example.org/report; citations of claims, figures and tables, BibTeX and replies "
        "of authors then have it. Null: they have none.",
    )


class Config(Strict):
    """Papers to reproduce, the scale of their experiments, and the source of the data."""

    scale: Literal["best", "quick", "reduced", "paper"] = Field(
        "best",
        description="best: show each experiment at the largest scale for which all runs are "
        "finished (published or in a store); nothing is downloaded or trained. The other scales "
        "compute missing runs. quick: minutes on a laptop, to check that everything works. "
        "reduced: experiments that fit a CPU run at the paper's size, the others are smaller and "
        "take hours. paper: the papers' own sizes. Verdicts of smaller runs are preliminary.",
    )
    data: Literal["embedded", "official"] = Field(
        "official",
        description="Source of the data. official: the real datasets, downloaded and verified "
        "when a run needs them; embedded: small generated stand-ins without download, for scale "
        "quick.",
    )
    shipped: bool = Field(
        True, description="Whether to use published runs; false recomputes everything."
    )
    papers: list[PathText] | None = Field(
        None,
        description="Papers to reproduce: names of folders in papers/, or paths of folders "
        "elsewhere; null: all folders in papers/.",
    )
    experiments: list[str] | None = Field(
        None,
        description="Only these experiments, as paper/experiment, with the figures and claims "
        "that need no other experiment; null: all experiments of the papers above.",
    )
    run: Name | None = Field(
        None,
        description="Name of this run, such as my-try. Its results go to results/my-try/ and leave "
        "other runs unchanged. All runs share downloaded data and the store of finished runs.",
    )
    schemes: list[PathText] = Field(
        default_factory=list,
        description="Your own Python files that define samplers (docs/add-a-sampler.md). "
        "Experiments can then use them by name, and the cross matrix compares them with all "
        "others. The hash of a run includes the content of its sampler's file.",
    )
    mirror: PathText | None = Field(
        None,
        description="Folder that holds the official files, DATASET/FILE with their original names; "
        "tried before the official addresses. If null, the environment variable "
        f"{MIRROR_VARIABLE} is used.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Device that trains the networks; auto: the GPU if there is one."
    )
    products: Literal["auto", "mkl", "onednn"] = Field(
        "auto",
        description="Library for matrix products of networks on a CPU; auto: the environment "
        f"variable {PRODUCTS_VARIABLE}, or else the library that is faster with the CPU's "
        "instruction set (docs/performance.md). The last digits of results depend on it, so each "
        "run records it.",
    )
    checkpoint_seconds: float = Field(
        60.0,
        ge=0,
        description="Seconds between two checkpoints of a job that trains a network; a killed job "
        "resumes from the last checkpoint.",
    )
    reuse: list[PathText] = Field(
        default_factory=list,
        description="Folders of finished runs, searched before anything is computed.",
    )
    store: PathText | None = Field(
        None,
        description="Folder that stores finished runs; null: results/store. "
        "Several users may share it.",
    )
    overrides: dict[str, dict[str, dict[str, Any] | None]] = Field(
        default_factory=dict,
        description="Changes to experiments, by paper, experiment and key; for example "
        "{rizk2022importance: {regression: {seeds: [0, 1, 2]}}}. Null leaves out an experiment "
        "and its figures and tables.",
    )

    report: Report = Field(
        default_factory=Report,
        description="Where the report is published. No result depends on it.",
    )
    cluster: Cluster = Field(
        default_factory=Cluster,
        description="Resources that jobs may request from a cluster (docs/cluster.md). No result "
        "depends on them.",
    )

    @field_validator("data")
    @classmethod
    def _not_embedded_at_scale_best(cls, data: str, info: ValidationInfo) -> str:
        if data == "embedded" and info.data.get("scale") == "best":
            raise ValueError("'embedded' has no finished runs; use data: official, or scale: quick")
        return data

    @field_validator("papers")
    @classmethod
    def _distinct(cls, papers: list[str] | None) -> list[str] | None:
        if papers is None:
            return None
        if not papers:
            raise ValueError("no papers; name at least one, or write null for all")
        return distinct(papers)

    @field_validator("experiments")
    @classmethod
    def _paper_and_experiment(cls, experiments: list[str] | None) -> list[str] | None:
        for name in experiments or ():
            if not all(parts := name.split("/")) or len(parts) != 2:
                raise ValueError(f"{short(name)} is invalid; must be paper/experiment")
        if experiments == []:
            raise ValueError("no experiments; name at least one, or write null for all")
        return distinct(experiments) if experiments else None

    @field_validator("run")
    @classmethod
    def _not_reserved(cls, run: str | None) -> str | None:
        if run and (run.casefold() in RESERVED_NAMES or run.casefold().endswith(RESERVED_SUFFIXES)):
            raise ValueError(f"'{run}' is reserved for results; use another name")
        return run

    @property
    def names_code(self) -> bool:
        """Whether it names files or folders with code, besides the papers of the project."""
        return bool(self.schemes) or any("/" in name for name in self.papers or ())

    @property
    def computes(self) -> bool:
        """Whether missing runs are computed; scale best only shows finished runs."""
        return self.scale != "best"

    def changes(self, paper: str) -> bool:
        """Whether the configuration changes or leaves out experiments of a paper."""
        return bool(self.overrides.get(paper)) or self.experiments is not None

    def run_folder(self, results: Path) -> Path:
        """Return the results folder of this run."""
        return results / self.run if self.run else results

    def public(self) -> dict[str, Any]:
        """Return the settings that a report shows: no private keys, file names without paths."""
        public = self.model_dump(mode="json", exclude=set(MACHINE_KEYS))
        public["schemes"] = [Path(name).name for name in self.schemes]
        if self.papers is not None:
            public["papers"] = [Path(name).name for name in self.papers]
        return public


def load(path: Path, only_reads: bool = False, run: str | None = None) -> Config:
    """Read and check a configuration file; `only_reads` loads none of the code that it names.

    `run`: the folder that has this file, in the results. Its name may be reserved, as that of
    ``tune`` is.
    """
    content = read_yaml(path)
    with naming(str(path)):
        if run and content.get("run") == run:
            return parse(content | {"run": None}, only_reads).model_copy(update={"run": run})
        return parse(content, only_reads)


def parse(content: dict[str, Any], only_reads: bool = False) -> Config:
    """Validate plain data as a configuration; load and register the samplers in `schemes`.

    If the caller only reads results and the configuration names code, none is loaded from now on.
    """
    config = check(Config, content, "")
    mirror = "mirror"
    if config.mirror is None and os.environ.get(MIRROR_VARIABLE):
        config = config.model_copy(update={"mirror": os.environ[MIRROR_VARIABLE]})
        mirror = MIRROR_VARIABLE
    problems = [
        f"reuse: '{name}' is not a folder; must be a folder of finished runs"
        for name in config.reuse
        if not os.path.isdir(name)
    ]
    if config.mirror and not os.path.isdir(folder(config.mirror)):
        problems.append(
            f"{mirror}: '{config.mirror}' is not a folder; must be the folder of the official files"
        )
    if config.store and (wrong := _unusable_store(config.store)):
        problems.append(f"store: {wrong}")
    if config.data == "embedded" and config.scale in ("reduced", "paper"):
        problems.append(
            f"data: embedded data are too small for scale {config.scale}; "
            "use data: official, or scale: quick"
        )
    file_problems: list[str] = []
    allow(not (only_reads and config.names_code))
    for file in [] if only_reads else config.schemes:
        with gathering(file_problems):
            load_file(Path(file))
    problems += [f"schemes: {line}" for line in file_problems]
    if problems:
        raise InputError(*problems)
    return config


def _unusable_store(store: str) -> str:
    """Return the reason why a folder, existing or not, cannot store runs; empty if it can."""
    absolute = Path(os.path.expanduser(store)).absolute()
    existing = next(path for path in (absolute, *absolute.parents) if os.path.lexists(path))
    return "" if existing.is_dir() else f"'{existing}' is a file; must be a folder"
