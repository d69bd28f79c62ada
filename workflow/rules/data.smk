# Download and verify the official files of datasets, and describe each dataset in a card.


rule fetch:
    output:
        "<data>/{dataset}.json",
    log:
        "<logs>/fetch/{dataset}.log",
    conda:
        "../../envs/fedsampling.yaml"
    params:
        config=project.config_file,
    message:
        "Fetching and verifying {wildcards.dataset}"
    shell:
        "fedsampling data fetch {wildcards.dataset:q} --config {params.config:q} > {log:q} 2>&1"


# A single process writes all cards that need no official files, because starting one takes 2 s. This
# rule has no wildcards, so it takes precedence over the next rule.
rule cards_without_files:
    output:
        collect("<results>/cards/{dataset}.json", dataset=plan.cards_without_files),
    log:
        "<logs>/card/without_files.log",
    conda:
        "../../envs/fedsampling.yaml"
    resources:
        **rule_resources.of("card"),
    params:
        config=project.config_file,
        datasets=plan.cards_without_files,
        made_from=[project.made_from(f"cards/{dataset}") for dataset in plan.cards_without_files],
    message:
        f"Describing {len(plan.cards_without_files)} datasets"
    shell:
        "fedsampling data card {params.datasets:q} --json --config {params.config:q} > {log:q} 2>&1"


rule card:
    input:
        lambda w: collect("<data>/{dataset}.json", dataset=plan.card_files(w.dataset)),
    output:
        "<results>/cards/{dataset}.json",
    log:
        "<logs>/card/{dataset}.log",
    conda:
        "../../envs/fedsampling.yaml"
    resources:
        **rule_resources.of("card"),
    params:
        config=project.config_file,
        made_from=lambda w: project.made_from(f"cards/{w.dataset}"),
    message:
        "Describing {wildcards.dataset}"
    shell:
        "fedsampling data card {wildcards.dataset:q} --json --config {params.config:q} > {log:q} 2>&1"
