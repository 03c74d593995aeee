"""The Spark job: from the ledgers of runs to findings, in stages that import only earlier ones."""
