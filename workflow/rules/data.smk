# The official files of a dataset, verified; and the card of each dataset that the papers use.
from dataclasses import asdict

from fedsampling.fingerprints import fingerprint
from fedsampling.uses import uses
from fedsampling.workflow import digest

USES = uses(plan.jobs.values())


def card_digest(dataset):
    """Digest of what a card is made from: how the papers use the dataset, and source files."""
    loaders = sorted({use.loader for use in USES[dataset]})
    code = fingerprint("fedsampling.datasets.cards", *loaders)
    return digest([code, *map(asdict, USES[dataset])])


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


rule card:
    input:
        lambda w: collect(
            "<results>/data/{dataset}.json",
            dataset=sorted(
                {file for use in USES[w.dataset] if use.data == "official" for file in use.files}
            ),
        ),
    output:
        "<results>/cards/{dataset}.json",
    log:
        "<logs>/card/{dataset}.log",
    conda:
        "../../envs/fedsampling.yaml"
    params:
        made_from=lambda w: card_digest(w.dataset),
    message:
        "Describing {wildcards.dataset}"
    shell:
        "fedsampling data card {wildcards.dataset} --json --config results/config.json > {log} 2>&1"
