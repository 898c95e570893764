# Fencepost as a release of the chart in deploy/helm, which has the defaults and checks the values.
# Nothing secret passes through Terraform: Secrets are named, and exist before.

resource "helm_release" "fencepost" {
  name      = var.name
  namespace = var.namespace
  chart     = "${path.module}/../helm/fencepost"
  values    = local.values

  lint    = true # so that a plan refuses what the chart's schema refuses
  timeout = 900  # seconds, for the first start of etcd
}
