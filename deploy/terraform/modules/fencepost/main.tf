locals {
  selector = {
    "app.kubernetes.io/name"     = "fencepost"
    "app.kubernetes.io/instance" = var.labels["app.kubernetes.io/instance"]
  }
  labels = merge(var.labels, local.selector)

  # With TLS, probes and Prometheus have a port of their own without it: neither knows a pod
  # by the name in its certificate.
  scheme = local.tls ? "https" : "http"
  ops    = local.tls ? { name = "ops", port = 9090 } : { name = "http", port = 8080 }
}

# It has no rights; pods get no token of it.
resource "kubernetes_service_account_v1" "api" {
  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }
  automount_service_account_token = false
}

resource "kubernetes_deployment_v1" "api" {
  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }

  spec {
    # The autoscaler's to say, if there is one.
    replicas                  = var.autoscaling == null ? var.replicas : null
    revision_history_limit    = 5
    progress_deadline_seconds = 600

    selector {
      match_labels = local.selector
    }

    # No replica goes before the next is ready. Two versions may serve one store.
    strategy {
      type = "RollingUpdate"
      rolling_update {
        max_surge       = "1"
        max_unavailable = "0"
      }
    }

    template {
      metadata {
        labels = local.labels
        annotations = {
          "prometheus.io/scrape" = "true"
          "prometheus.io/port"   = tostring(local.ops.port)
          "prometheus.io/path"   = "/metrics"
        }
      }

      spec {
        service_account_name            = kubernetes_service_account_v1.api.metadata[0].name
        automount_service_account_token = false
        enable_service_links            = false # their variables would be taken for flags: FENCEPOST_…

        termination_grace_period_seconds = var.drain.delay_seconds + var.drain.seconds + 10

        security_context {
          run_as_non_root = true
          run_as_user     = "65532"
          run_as_group    = "65532"
          fs_group        = "65532"
          seccomp_profile {
            type = "RuntimeDefault"
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
        topology_spread_constraint {
          max_skew           = 1
          topology_key       = "kubernetes.io/hostname"
          when_unsatisfiable = "ScheduleAnyway"
          label_selector {
            match_labels = local.selector
          }
        }

        container {
          name  = "api"
          image = var.image
          args  = local.args

          dynamic "env" {
            for_each = local.env
            content {
              name  = env.key
              value = env.value
            }
          }

          port {
            name           = local.scheme
            container_port = 8080
          }
          dynamic "port" {
            for_each = local.tls ? [local.ops] : []
            content {
              name           = port.value.name
              container_port = port.value.port
            }
          }

          resources {
            requests = { cpu = var.cpu, memory = "${var.memory_mib}Mi" }
            limits   = { memory = "${var.memory_mib}Mi" }
          }

          # None of the first two asks the store: a replica is not restarted because the store
          # is away. While it starts it may wait for the store for long.
          startup_probe {
            http_get {
              path = "/healthz"
              port = local.ops.name
            }
            period_seconds    = 2
            failure_threshold = 150
            timeout_seconds   = 2
          }
          liveness_probe {
            http_get {
              path = "/healthz"
              port = local.ops.name
            }
            period_seconds    = 10
            failure_threshold = 6
            timeout_seconds   = 5
          }
          readiness_probe {
            http_get {
              path = "/readyz"
              port = local.ops.name
            }
            period_seconds    = 2
            failure_threshold = 2
            timeout_seconds   = 5
          }

          security_context {
            allow_privilege_escalation = false
            read_only_root_filesystem  = true
            run_as_non_root            = true
            capabilities {
              drop = ["ALL"]
            }
          }

          dynamic "volume_mount" {
            for_each = merge(local.secrets, local.config_maps)
            content {
              name       = volume_mount.key
              mount_path = "${local.files}/${volume_mount.key}"
              read_only  = true
            }
          }
        }

        dynamic "volume" {
          for_each = local.secrets
          content {
            name = volume.key
            secret {
              secret_name  = volume.value.name
              default_mode = "0440"
              dynamic "items" {
                for_each = volume.value.files
                content {
                  key  = items.key
                  path = items.value
                }
              }
            }
          }
        }

        dynamic "volume" {
          for_each = local.config_maps
          content {
            name = volume.key
            config_map {
              name         = volume.value.name
              default_mode = "0444"
              items {
                key  = volume.value.key
                path = volume.value.key
              }
            }
          }
        }
      }
    }
  }
}

resource "kubernetes_service_v1" "api" {
  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }
  spec {
    selector = local.selector
    port {
      name        = local.scheme
      port        = local.tls ? 443 : 80
      target_port = local.scheme
    }
  }
}

resource "kubernetes_pod_disruption_budget_v1" "api" {
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
