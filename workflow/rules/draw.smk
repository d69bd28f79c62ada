# Summaries, artefacts and verdicts of each paper. One process updates the files that are out of date;
# `update` prevents Snakemake from deleting the other files first. It deletes only the mark: a process
# that is killed, or never starts, leaves old files without a mark, and the next call draws again.
for paper in plan.papers:

    rule:
        name:
            f"draw_{paper}"
        input:
            collect("<results>/runs/{job}.json", job=plan.jobs_to_run(paper)),
        output:
            update(collect("<results>/{file}", file=plan.report_inputs(paper))),
            mark=touch(f"<results>/{plan.mark(paper)}"),
        log:
            f"<logs>/draw/{paper}.log",
        conda:
            "../../envs/fedsampling.yaml"
        resources:
            **rule_resources.of("draw"),
        params:
            config=project.config_file,
            paper=paper,
            made_from=project.made_from(f"papers/{paper}"),
        message:
            f"Drawing {paper}"
        shell:
            "fedsampling draw {params.paper:q} --config {params.config:q} > {log:q} 2>&1"

    # Each paper is a target.
    rule:
        name:
            paper
        input:
            collect("<results>/{file}", file=plan.drawn(paper)),
        localrule: True


# An experiment named as a target is a target, too; the plan then contains only such experiments.
for experiment in target_experiments:

    rule:
        name:
            experiment
        input:
            collect("<results>/{file}", file=plan.drawn(experiment.split("/")[0])),
        localrule: True
