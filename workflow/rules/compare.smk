# Comparison of the user's samplers, in the files listed under `schemes`, with all others.


rule compare:
    input:
        collect("<results>/compare/{scheme}/report/index.html", scheme=plan.users_samplers),
    localrule: True


rule compare_scheme:
    output:
        "<results>/compare/{scheme}/report/index.html",
    log:
        "<logs>/compare/{scheme}.log",
    wildcard_constraints:
        scheme="[^/]+",
    conda:
        "../../envs/fedsampling.yaml"
    threads: 4  # processes, of which the largest four take 7 GB together (docs/cluster.md)
    resources:
        **rule_resources.of("compare"),
    params:
        config=project.config_file,
        file=lambda w: plan.users_samplers[w.scheme],
        scale=project.config.scale if project.config.computes else "reduced",
        made_from=lambda w: project.made_from(f"compare/{w.scheme}"),
    message:
        "Comparing {wildcards.scheme} with all other samplers"
    shell:
        "fedsampling compare --cores {threads:q} --scale {params.scale:q} --config {params.config:q} -- {params.file:q} 2>&1 | tee {log:q}"
