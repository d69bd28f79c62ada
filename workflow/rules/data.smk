# The configuration as resolved, and the official files of a dataset, verified.


rule configure:
    output:
        "<results>/config.json",
    log:
        "<logs>/configure.log",
    conda:
        "../../envs/fedsampling.yaml"
    params:
        given=plan.given,
    message:
        "Resolving the configuration"
    shell:
        "fedsampling configure {params.given:q} {output} > {log} 2>&1"


rule fetch:
    input:
        config=ancient("<results>/config.json"),
    output:
        "<results>/data/{dataset}.json",
    log:
        "<logs>/fetch/{dataset}.log",
    conda:
        "../../envs/fedsampling.yaml"
    message:
        "Fetching and verifying {wildcards.dataset}"
    shell:
        "fedsampling fetch {wildcards.dataset} --config {input.config} > {log} 2>&1"
