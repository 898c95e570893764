locals {
  selector = {
    "app.kubernetes.io/name"     = "fencepost"
    "app.kubernetes.io/instance" = var.labels["app.kubernetes.io/instance"]
  }
  labels = merge(var.labels, local.selector)

  # Files from Secrets. Each is mounted into a folder of its own, readable by the group of
  # the pod only.
  secrets = { for k, s in {
    jwt       = var.auth.jwt_secret == null ? null : { name = var.auth.jwt_secret.name, files = { (var.auth.jwt_secret.key) = "secret" } }
    token-key = var.token_key_secret == null ? null : { name = var.token_key_secret.name, files = { (var.token_key_secret.key) = "key" } }
    store-ca  = var.store.ca_secret == null ? null : { name = var.store.ca_secret, files = { "ca.crt" = "ca.crt" } }
    store-tls = var.store.client_tls_secret == null ? null : { name = var.store.client_tls_secret, files = { "tls.crt" = "tls.crt", "tls.key" = "tls.key" } }
    store-password = var.store.password_secret == null ? null : {
      name = var.store.password_secret.name, files = { (var.store.password_secret.key) = "password" }
    }
  } : k => s if s != null }

  files = "/etc/fencepost"

  args = compact([
    "--listen=0.0.0.0:8080",
    "--store=${var.store.address}",
    var.store.ca_secret == null ? "" : "--store-ca=${local.files}/store-ca/ca.crt",
    var.store.client_tls_secret == null ? "" : "--store-cert=${local.files}/store-tls/tls.crt",
    var.store.client_tls_secret == null ? "" : "--store-key=${local.files}/store-tls/tls.key",
    var.store.username == null ? "" : "--store-username=${var.store.username}",
    var.store.password_secret == null ? "" : "--store-password-file=${local.files}/store-password/password",
    var.auth.jwt_secret == null ? "" : "--jwt-secret-file=${local.files}/jwt/secret",
    var.auth.jwks == null ? "" : "--jwks=${var.auth.jwks}",
    var.auth.issuer == null ? "" : "--jwt-issuer=${var.auth.issuer}",
    var.auth.audience == null ? "" : "--jwt-audience=${var.auth.audience}",
    var.token_key_secret == null ? "" : "--token-key-file=${local.files}/token-key/key",
    "--max-ttl-seconds=${var.max_ttl_seconds}",
    "--drain-delay-seconds=${var.drain.delay_seconds}",
    "--drain-seconds=${var.drain.seconds}",
    "--log-level=${var.log_level}",
    length(var.trusted_proxies) == 0 ? "" : "--trusted-proxies=${join(",", var.trusted_proxies)}",
    length(var.webhooks.allow) == 0 ? "" : "--webhook-allow=${join(",", var.webhooks.allow)}",
    var.webhooks.allow_http ? "--webhook-allow-http" : "",
    length(var.webhooks.ports) == 0 ? "" : "--webhook-ports=${join(",", var.webhooks.ports)}",
  ])

  env = merge(
    { GOMEMLIMIT = "${floor(var.memory_mib * 0.8)}MiB" },
    var.otlp_endpoint == null ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT = var.otlp_endpoint },
  )
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
          "prometheus.io/port"   = "8080"
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
            name           = "http"
            container_port = 8080
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
              port = "http"
            }
            period_seconds    = 2
            failure_threshold = 150
            timeout_seconds   = 2
          }
          liveness_probe {
            http_get {
              path = "/healthz"
              port = "http"
            }
            period_seconds    = 10
            failure_threshold = 6
            timeout_seconds   = 5
          }
          readiness_probe {
            http_get {
              path = "/readyz"
              port = "http"
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
            for_each = local.secrets
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
      name        = "http"
      port        = 80
      target_port = "http"
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
