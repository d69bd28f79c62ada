# The report.


rule report:
    input:
        drawn=[f"<results>/{file}" for paper in plan.papers for file in plan.drawn(paper)],
        cards=collect("<results>/cards/{dataset}.json", dataset=plan.cards),
        recheck=[] if project.config.computes else "<results>/recheck.json",
    output:
        "<results>/report/index.html",
    log:
        "<logs>/report.log",
    conda:
        "../../envs/fedsampling.yaml"
    params:
        config=project.config_file,
        made_from=project.made_from("report"),
    message:
        "Writing the report"
    shell:
        "fedsampling report --config {params.config:q} > {log:q} 2>&1"
