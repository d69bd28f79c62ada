# All runs of an experiment in one table.


rule summarise:
    input:
        runs=lambda w: collect("<results>/runs/{job}.json", job=plan.jobs_of(w.paper, w.experiment)),
    output:
        "<results>/summaries/{paper}/{experiment}.parquet",
    log:
        "<logs>/summarise/{paper}/{experiment}.log",
    conda:
        "../../envs/fedsampling.yaml"
    resources:
        runtime=plan.resource("runtime", "summarise"),
        mem_mb=plan.resource("mem_mb", "summarise"),
    params:
        settings=lambda w: plan.settings(w.paper, w.experiment),
        code=lambda w: plan.stage_code("summarise"),
    message:
        "Summarising {wildcards.paper} {wildcards.experiment}"
    shell:
        "fedsampling summarise {wildcards.paper} {wildcards.experiment} --config results/config.json > {log} 2>&1"
