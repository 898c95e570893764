resource "kubernetes_ingress_v1" "api" {
  count = var.ingress == null ? 0 : 1

  metadata {
    name      = var.name
    namespace = var.namespace
    labels    = local.labels
    annotations = merge({
      # A request is held open for up to 50 s, an event stream has a sign of life every 15 s.
      "nginx.ingress.kubernetes.io/proxy-read-timeout" = "90"
      "nginx.ingress.kubernetes.io/proxy-send-timeout" = "90"
      "nginx.ingress.kubernetes.io/proxy-buffering"    = "off"
      # A POST that was repeated without an Idempotency-Key would be a second entry.
      "nginx.ingress.kubernetes.io/proxy-next-upstream" = "off"
      }, !local.tls ? {} : {
      "nginx.ingress.kubernetes.io/backend-protocol" = "HTTPS"
    }, var.ingress.annotations)
  }
  spec {
    ingress_class_name = var.ingress.class
    tls {
      hosts       = [var.ingress.host]
      secret_name = var.ingress.tls_secret
    }
    rule {
      host = var.ingress.host
      http {
        dynamic "path" {
          for_each = var.ingress.paths
          content {
            path      = path.value
            path_type = "Prefix"
            backend {
              service {
                name = kubernetes_service_v1.api.metadata[0].name
                port {
                  name = local.scheme
                }
              }
            }
          }
        }
      }
    }
  }
}
