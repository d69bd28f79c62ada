# The official files of a dataset, verified.


rule fetch:
    output:
        "<results>/data/{dataset}.json",
    log:
        "<logs>/fetch/{dataset}.log",
    conda:
        "../../envs/fedsampling.yaml"
    message:
        "Fetching and verifying {wildcards.dataset}"
    shell:
        "fedsampling fetch {wildcards.dataset} --config results/config.json > {log} 2>&1"
