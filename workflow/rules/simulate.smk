# A job: one block of seeds of one case and sampler. Finished runs are reused from the run store.

JOB = "{paper}/{experiment}/{case}/{sampler}/block-{block}"


rule simulate:
    input:
        data=lambda w: collect("<data>/{dataset}.json", dataset=plan.datasets(JOB.format(**w))),
    output:
        f"<results>/runs/{JOB}.json",
    log:
        f"<logs>/simulate/{JOB}.log",
    benchmark:
        f"<benchmarks>/simulate/{JOB}.tsv"
    conda:
        "../../envs/fedsampling.yaml"
    threads: 1
    resources:
        **rule_resources.of(JOB),
    params:
        config=project.config_file,
        job=JOB,
        made_from=lambda w: project.job_made_from(JOB.format(**w)),
    message:
        "Running {wildcards.paper} {wildcards.experiment}: {wildcards.sampler}, {wildcards.case}, block {wildcards.block}"
    shell:
        "exec fedsampling run {params.job:q} --config {params.config:q} > {log:q} 2>&1"


# Batches: short jobs that share a process to save its start-up time. These rules have no wildcards,
# so they take precedence over the rule above.
for batch, jobs in plan.batches.items():

    rule:
        name:
            f"simulate_{batch}"
        input:
            data=collect("<data>/{dataset}.json", dataset=plan.datasets(*jobs)),
        output:
            collect("<results>/runs/{job}.json", job=jobs),
        log:
            f"<logs>/simulate/{batch}.log",
        benchmark:
            f"<benchmarks>/simulate/{batch}.tsv"
        conda:
            "../../envs/fedsampling.yaml"
        threads: 1
        resources:
            **rule_resources.of(batch),
        params:
            config=project.config_file,
            jobs=jobs,
            made_from=project.job_made_from(*jobs),
        message:
            f"Running {len(jobs)} jobs of {batch}"
        shell:
            "exec fedsampling run {params.jobs:q} --config {params.config:q} > {log:q} 2>&1"
