locals {
  # Where webhooks and the JWK Set are: public addresses, on the ports that the server allows.
  ports = sort(distinct(concat(["443"], var.webhooks.allow_http ? ["80"] : [], [for p in var.webhooks.ports : tostring(p)])))
}

resource "kubernetes_network_policy_v1" "api" {
  count = var.network_policies.enabled ? 1 : 0

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
        port     = "8080"
      }
      dynamic "from" {
        for_each = length(var.network_policies.from_namespaces) == 0 ? [] : distinct(concat(var.network_policies.from_namespaces, var.network_policies.metrics_from))
        content {
          namespace_selector {
            match_labels = { "kubernetes.io/metadata.name" = from.value }
          }
        }
      }
    }

    dynamic "ingress" { # figures, where they have a port of their own
      for_each = local.tls && length(var.network_policies.metrics_from) > 0 ? [local.ops.port] : []
      content {
        ports {
          protocol = "TCP"
          port     = tostring(ingress.value)
        }
        dynamic "from" {
          for_each = var.network_policies.metrics_from
          content {
            namespace_selector {
              match_labels = { "kubernetes.io/metadata.name" = from.value }
            }
          }
        }
      }
    }

    egress { # names
      dynamic "ports" {
        for_each = ["UDP", "TCP"]
        content {
          protocol = ports.value
          port     = "53"
        }
      }
    }

    dynamic "egress" { # the etcd cluster beside
      for_each = var.store_network.etcd == null ? [] : [var.store_network.etcd]
      content {
        ports {
          protocol = "TCP"
          port     = "2379"
        }
        to {
          pod_selector {
            match_labels = egress.value
          }
        }
      }
    }

    dynamic "egress" { # or a store elsewhere
      for_each = var.store_network.cidr == null ? [] : distinct(regexall(":([0-9]+)", trimprefix(trimprefix(var.store.address, "etcd:"), "zookeeper:")))
      content {
        ports {
          protocol = "TCP"
          port     = egress.value[0]
        }
        to {
          ip_block {
            cidr = var.store_network.cidr
          }
        }
      }
    }

    egress { # webhooks and the JWK Set
      dynamic "ports" {
        for_each = local.ports
        content {
          protocol = "TCP"
          port     = ports.value
        }
      }
      to {
        ip_block {
          cidr   = "0.0.0.0/0"
          except = var.network_policies.private_ranges
        }
      }
      to {
        ip_block {
          cidr   = "::/0"
          except = ["fc00::/7", "fe80::/10"]
        }
      }
      dynamic "to" {
        for_each = var.webhooks.allow
        content {
          ip_block {
            cidr = to.value
          }
        }
      }
    }

    dynamic "egress" {
      for_each = var.network_policies.egress
      content {
        ports {
          protocol = "TCP"
          port     = tostring(egress.value.port)
        }
        to {
          ip_block {
            cidr = egress.value.cidr
          }
        }
      }
    }
  }
}
