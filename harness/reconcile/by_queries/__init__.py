"""The finders as queries of Spark, for one commit: held to the same rows as the tables that replace them."""
