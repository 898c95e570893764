# ConfigMaps, not the resources of an operator: these need no definitions in the cluster, and
# Terraform can plan them without one.

locals {
  # Beside deploy/terraform, so that they are there for those who do not use Terraform.
  files = "${path.module}/../../.."
}

resource "kubernetes_config_map_v1" "dashboard" {
  metadata {
    name      = "${var.name}-dashboard"
    namespace = var.namespace
    labels    = merge(var.labels, { grafana_dashboard = "1" })
  }
  data = {
    "fencepost.json" = file("${local.files}/grafana/fencepost.json")
  }
}

resource "kubernetes_config_map_v1" "rules" {
  metadata {
    name      = "${var.name}-rules"
    namespace = var.namespace
    labels    = merge(var.labels, var.rule_labels)
  }
  data = {
    "fencepost.yaml" = file("${local.files}/prometheus/fencepost.yaml")
  }
}
