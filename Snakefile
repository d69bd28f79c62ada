# Reproduces five papers on client sampling in federated learning, from sources to a report.
#
#   snakemake --cores N                      everything in config.yaml
#   snakemake --cores N rizk2022importance   one paper
#
# The rules form three stages: runs, one drawing process per paper, and the report. Each rule calls
# one `fedsampling` command. The plan lists the jobs, the digests decide which steps are out of date,
# and `rule_resources` has the time, memory and GPU that each job requests from a cluster.
import os
from pathlib import Path

from snakemake.cli import get_argument_parser
from snakemake.utils import min_version

from fedsampling.runs.rule_resources import RuleResources
from fedsampling.workflow.snakefile import (
    select_experiments,
    check_targets,
    check_file,
    open_project,
    is_stopped_by_user,
    start,
    papers_of,
)

min_version("9.12")


check_file(Path("config.yaml"))


configfile: "config.yaml"


# A target can be an experiment: then only the targeted experiments are run.
targets = get_argument_parser().parse_known_args()[0].targets
target_experiments = select_experiments(targets, config)
project = open_project(config, workflow.config_settings)
plan = project.plan
rule_resources = RuleResources(plan.jobs, plan.batches, project.config.cluster, project.results)


# Image of the jobs with --software-deployment-method apptainer (docs/cluster.md).
if image := os.environ.get("FEDSAMPLING_IMAGE"):

    container: image


# A named run has its own results folder; all runs share the data.
pathvars:
    results=str(project.folder),
    benchmarks=str(project.folder / "benchmarks"),
    logs=str(project.config.run_folder(Path("logs"))),
    data=str(project.data),


wildcard_constraints:
    paper="[a-z0-9]+",
    experiment="[^/]+",
    case="[^/]+",
    sampler="[^/]+",
    block="[0-9]+",


# On a cluster, these rules run on the login node: compute nodes may have no internet, and the report
# takes seconds.
localrules:
    all,
    fetch,
    report,


# Every step reads the resolved configuration and its plan. They are not inputs of the rules, because
# the parameters of a step contain everything that it uses of them. If a first rule wrote them,
# Snakemake could not see in the same call which steps are out of date.
onstart:
    start(project)
    if workflow.non_local_exec:
        rule_resources.warn(plan.due)


# After a failure, unless the user stopped Snakemake: report the finished part of the targets'
# papers, and why the rest is missing.
onerror:
    if not is_stopped_by_user(log):
        papers = papers_of(targets, plan.papers)
        shell("fedsampling report --unfinished --config {project.config_file:q} -- {papers:q}")


rule all:
    default_target: True
    input:
        collect("<results>/{file}", file=plan.final_files()),


include: "workflow/rules/data.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/draw.smk"
include: "workflow/rules/recheck.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/compare.smk"


# For an unknown target, Snakemake would print a traceback and suggest no similar name.
check_targets(targets, [rule.name for rule in workflow.rules], project)
