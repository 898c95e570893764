locals {
  selector = {
    "app.kubernetes.io/name"     = "etcd"
    "app.kubernetes.io/instance" = var.labels["app.kubernetes.io/instance"]
  }
  labels = merge(var.labels, local.selector)

  names  = [for i in range(var.etcd.members) : "${var.name}-${i}"]
  domain = "${var.name}.${var.namespace}.svc"
  hosts  = [for name in local.names : "${name}.${local.domain}"]

  peer_scheme = var.etcd.peer_tls_secret == null ? "http" : "https"
  scheme      = var.etcd.tls_secret == null ? "http" : "https"

  secrets = { for k, name in { peer-tls = var.etcd.peer_tls_secret, tls = var.etcd.tls_secret } : k => name if name != null }

  args = concat([
    "--name=$(POD_NAME)",
    # A folder that etcd makes, with the mode that it wants.
    "--data-dir=/var/lib/etcd/data",
    "--listen-peer-urls=${local.peer_scheme}://0.0.0.0:2380",
    "--initial-advertise-peer-urls=${local.peer_scheme}://$(POD_NAME).${local.domain}:2380",
    "--listen-client-urls=${local.scheme}://0.0.0.0:2379",
    "--advertise-client-urls=${local.scheme}://$(POD_NAME).${local.domain}:2379",
    "--listen-metrics-urls=http://0.0.0.0:2381",
    "--initial-cluster-token=${var.name}",
    "--initial-cluster=${join(",", [for i, name in local.names : "${name}=${local.peer_scheme}://${local.hosts[i]}:2380"])}",
    # Counts only while a member's folder is empty. A member that lost its disk is removed
    # and added by hand (docs/operate/stores.md).
    "--initial-cluster-state=new",
    # Every lock is a key of its own: without compaction the index only grows.
    "--auto-compaction-mode=periodic",
    "--auto-compaction-retention=10m",
    "--quota-backend-bytes=${var.etcd.quota_mib * 1048576}",
    ], var.etcd.peer_tls_secret == null ? [] : [
    "--peer-client-cert-auth",
    "--peer-trusted-ca-file=/etc/etcd/peer-tls/ca.crt",
    "--peer-cert-file=/etc/etcd/peer-tls/tls.crt",
    "--peer-key-file=/etc/etcd/peer-tls/tls.key",
    ], var.etcd.tls_secret == null ? [] : [
    "--client-cert-auth",
    "--trusted-ca-file=/etc/etcd/tls/ca.crt",
    "--cert-file=/etc/etcd/tls/tls.crt",
    "--key-file=/etc/etcd/tls/tls.key",
  ])
}

# Members have to find each other before they are ready.
resource "kubernetes_service_v1" "members" {
  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }
  spec {
    cluster_ip                  = "None"
    publish_not_ready_addresses = true
    selector                    = local.selector
    port {
      name = "client"
      port = 2379
    }
    port {
      name = "peer"
      port = 2380
    }
  }
}

resource "kubernetes_stateful_set_v1" "etcd" {
  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }

  spec {
    service_name          = kubernetes_service_v1.members.metadata[0].name
    replicas              = tostring(var.etcd.members)
    pod_management_policy = "Parallel"

    selector {
      match_labels = local.selector
    }

    update_strategy {
      type = "RollingUpdate"
    }

    template {
      metadata {
        labels = local.labels
        annotations = {
          "prometheus.io/scrape" = "true"
          "prometheus.io/port"   = "2381"
          "prometheus.io/path"   = "/metrics"
        }
      }

      spec {
        automount_service_account_token  = false
        enable_service_links             = false # their variables would be taken for flags: ETCD_…
        termination_grace_period_seconds = 60

        security_context {
          run_as_non_root        = true
          run_as_user            = "65532"
          run_as_group           = "65532"
          fs_group               = "65532"
          fs_group_change_policy = "OnRootMismatch"
          seccomp_profile {
            type = "RuntimeDefault"
          }
        }

        affinity {
          pod_anti_affinity {
            required_during_scheduling_ignored_during_execution {
              topology_key = "kubernetes.io/hostname"
              label_selector {
                match_labels = local.selector
              }
            }
          }
        }
        topology_spread_constraint {
          max_skew           = 1
          topology_key       = "topology.kubernetes.io/zone"
          when_unsatisfiable = "ScheduleAnyway"
          label_selector {
            match_labels = local.selector
          }
        }

        container {
          name    = "etcd"
          image   = var.etcd.image
          command = ["/usr/local/bin/etcd"]
          args    = local.args

          env {
            name = "POD_NAME"
            value_from {
              field_ref {
                field_path = "metadata.name"
              }
            }
          }

          port {
            name           = "client"
            container_port = 2379
          }
          port {
            name           = "peer"
            container_port = 2380
          }
          port {
            name           = "metrics"
            container_port = 2381
          }

          resources {
            requests = { cpu = var.etcd.cpu, memory = "${var.etcd.memory_mib}Mi" }
            limits   = { memory = "${var.etcd.memory_mib}Mi" }
          }

          # A member without its quorum lives, and is not ready.
          startup_probe {
            http_get {
              path = "/livez"
              port = "metrics"
            }
            period_seconds    = 5
            failure_threshold = 120
            timeout_seconds   = 5
          }
          liveness_probe {
            http_get {
              path = "/livez"
              port = "metrics"
            }
            period_seconds    = 10
            failure_threshold = 6
            timeout_seconds   = 10
          }
          readiness_probe {
            http_get {
              path = "/readyz"
              port = "metrics"
            }
            period_seconds    = 5
            failure_threshold = 3
            timeout_seconds   = 10
          }

          security_context {
            allow_privilege_escalation = false
            read_only_root_filesystem  = true
            run_as_non_root            = true
            capabilities {
              drop = ["ALL"]
            }
          }

          volume_mount {
            name       = "data"
            mount_path = "/var/lib/etcd"
          }
          dynamic "volume_mount" {
            for_each = local.secrets
            content {
              name       = volume_mount.key
              mount_path = "/etc/etcd/${volume_mount.key}"
              read_only  = true
            }
          }
        }

        dynamic "volume" {
          for_each = local.secrets
          content {
            name = volume.key
            secret {
              secret_name  = volume.value
              default_mode = "0440"
            }
          }
        }
      }
    }

    volume_claim_template {
      metadata {
        name      = "data"
        namespace = var.namespace
      }
      spec {
        access_modes       = ["ReadWriteOnce"]
        storage_class_name = var.etcd.storage_class
        resources {
          requests = { storage = var.etcd.storage }
        }
      }
    }

    persistent_volume_claim_retention_policy {
      when_deleted = "Retain"
      when_scaled  = "Retain"
    }
  }
}

resource "kubernetes_pod_disruption_budget_v1" "etcd" {
  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }
  spec {
    max_unavailable = "1"
    selector {
      match_labels = local.selector
    }
  }
}
