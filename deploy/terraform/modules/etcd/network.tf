resource "kubernetes_network_policy_v1" "etcd" {
  count = var.network_policies ? 1 : 0

  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }
  spec {
    policy_types = ["Ingress", "Egress"]
    pod_selector {
      match_labels = local.selector
    }

    ingress {
      ports {
        protocol = "TCP"
        port     = "2379"
      }
      from {
        pod_selector {
          match_labels = var.clients
        }
      }
      from {
        pod_selector {
          match_labels = local.backup_selector
        }
      }
    }
    ingress {
      ports {
        protocol = "TCP"
        port     = "2380"
      }
      from {
        pod_selector {
          match_labels = local.selector
        }
      }
    }
    dynamic "ingress" {
      for_each = length(var.metrics_from) == 0 ? [] : [var.metrics_from]
      content {
        ports {
          protocol = "TCP"
          port     = "2381"
        }
        dynamic "from" {
          for_each = ingress.value
          content {
            namespace_selector {
              match_labels = { "kubernetes.io/metadata.name" = from.value }
            }
          }
        }
      }
    }

    egress {
      dynamic "ports" {
        for_each = ["UDP", "TCP"]
        content {
          protocol = ports.value
          port     = "53"
        }
      }
    }
    egress {
      ports {
        protocol = "TCP"
        port     = "2380"
      }
      to {
        pod_selector {
          match_labels = local.selector
        }
      }
    }
  }
}
