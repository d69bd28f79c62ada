# Rerun some finished runs, to check that this machine reproduces their results.


rule recheck:
    output:
        "<results>/recheck.json",
    log:
        "<logs>/recheck.log",
    conda:
        "../../envs/fedsampling.yaml"
    params:
        config=project.config_file,
        made_from=project.made_from("recheck"),
    message:
        "Rechecking some finished runs"
    shell:
        "fedsampling recheck --config {params.config:q} > {log:q} 2>&1"
