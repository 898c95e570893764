resource "kubernetes_horizontal_pod_autoscaler_v2" "api" {
  count = var.autoscaling == null ? 0 : 1

  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
  }
  spec {
    min_replicas = var.replicas
    max_replicas = var.autoscaling.max_replicas

    scale_target_ref {
      api_version = "apps/v1"
      kind        = "Deployment"
      name        = kubernetes_deployment_v1.api.metadata[0].name
    }

    metric {
      type = "Resource"
      resource {
        name = "cpu"
        target {
          type                = "Utilization"
          average_utilization = var.autoscaling.cpu_percent
        }
      }
    }

    dynamic "metric" {
      for_each = var.autoscaling.requests_per_replica == null ? [] : [var.autoscaling.requests_per_replica]
      content {
        type = "Pods"
        pods {
          metric {
            name = "fencepost_http_requests_in_flight"
          }
          target {
            type          = "AverageValue"
            average_value = tostring(metric.value)
          }
        }
      }
    }

    # A replica that goes sends its waiting requests elsewhere: not for a dip of a minute.
    behavior {
      scale_down {
        stabilization_window_seconds = 600
        select_policy                = "Max"
        policy {
          type           = "Pods"
          value          = 1
          period_seconds = 120
        }
      }
    }
  }
}
