# What the server is started with. A flag for each variable, and files for what it names.
locals {
  files = "/etc/fencepost"
  tls   = var.tls != null

  # Files from Secrets. Each is mounted into a folder of its own, readable by the group of
  # the pod only.
  secrets = { for k, s in {
    jwt       = var.auth.jwt_secret == null ? null : { name = var.auth.jwt_secret.name, files = { (var.auth.jwt_secret.key) = "secret" } }
    token-key = var.token_key_secret == null ? null : { name = var.token_key_secret.name, files = { (var.token_key_secret.key) = "key" } }
    tls       = var.tls == null ? null : { name = var.tls.secret, files = { "tls.crt" = "tls.crt", "tls.key" = "tls.key" } }
    client-ca = try(var.tls.client_ca, null) == null ? null : { name = var.tls.client_ca.name, files = { (var.tls.client_ca.key) = "ca.crt" } }
    oidc      = try(var.oidc.client_secret, null) == null ? null : { name = var.oidc.client_secret.name, files = { (var.oidc.client_secret.key) = "secret" } }
    store-ca  = var.store.ca_secret == null ? null : { name = var.store.ca_secret, files = { "ca.crt" = "ca.crt" } }
    store-tls = var.store.client_tls_secret == null ? null : { name = var.store.client_tls_secret, files = { "tls.crt" = "tls.crt", "tls.key" = "tls.key" } }
    store-password = var.store.password_secret == null ? null : {
      name = var.store.password_secret.name, files = { (var.store.password_secret.key) = "password" }
    }
  } : k => s if s != null }

  # Files with principals and their rights; nothing in them is secret.
  config_maps = { for k, m in {
    principals      = try(var.tls.principals, null)
    oidc-principals = try(var.oidc.principals, null)
  } : k => m if m != null }

  oidc_redirect_url = var.oidc == null ? "" : var.oidc.redirect_url != null ? var.oidc.redirect_url : "https://${var.ingress.host}/dashboard/sign-in/oidc/callback"

  args = concat(compact([
    "--listen=0.0.0.0:8080",
    local.tls ? "--ops-listen=0.0.0.0:9090" : "",
    "--store=${var.store.address}",
    var.store.ca_secret == null ? "" : "--store-ca=${local.files}/store-ca/ca.crt",
    var.store.client_tls_secret == null ? "" : "--store-cert=${local.files}/store-tls/tls.crt",
    var.store.client_tls_secret == null ? "" : "--store-key=${local.files}/store-tls/tls.key",
    var.store.username == null ? "" : "--store-username=${var.store.username}",
    var.store.password_secret == null ? "" : "--store-password-file=${local.files}/store-password/password",
    local.tls ? "--tls-cert=${local.files}/tls/tls.crt" : "",
    local.tls ? "--tls-key=${local.files}/tls/tls.key" : "",
    try(var.tls.client_ca, null) == null ? "" : "--client-ca=${local.files}/client-ca/ca.crt",
    try(var.tls.principals, null) == null ? "" : "--principals=${local.files}/principals/${var.tls.principals.key}",
    var.auth.jwt_secret == null ? "" : "--jwt-secret-file=${local.files}/jwt/secret",
    var.auth.jwks == null ? "" : "--jwks=${var.auth.jwks}",
    var.auth.issuer == null ? "" : "--jwt-issuer=${var.auth.issuer}",
    var.auth.audience == null ? "" : "--jwt-audience=${var.auth.audience}",
    var.token_key_secret == null ? "" : "--token-key-file=${local.files}/token-key/key",
    "--max-ttl-seconds=${var.max_ttl_seconds}",
    "--drain-delay-seconds=${var.drain.delay_seconds}",
    "--drain-seconds=${var.drain.seconds}",
    "--log-level=${var.log_level}",
    var.trusted_proxy_hops == 0 ? "" : "--trusted-proxy-hops=${var.trusted_proxy_hops}",
    length(var.webhooks.allow) == 0 ? "" : "--webhook-allow=${join(",", var.webhooks.allow)}",
    var.webhooks.allow_http ? "--webhook-allow-http" : "",
    length(var.webhooks.ports) == 0 ? "" : "--webhook-ports=${join(",", var.webhooks.ports)}",
  ]), local.oidc_args, local.quota_args)

  oidc_args = var.oidc == null ? [] : compact([
    "--oidc=${join(",", compact([
      "issuer=${var.oidc.issuer}",
      "client_id=${var.oidc.client_id}",
      var.oidc.client_secret == null ? "" : "client_secret_file=${local.files}/oidc/secret",
      "principals=${local.files}/oidc-principals/${var.oidc.principals.key}",
      "redirect_url=${local.oidc_redirect_url}",
      var.oidc.name_claim == null ? "" : "name_claim=${var.oidc.name_claim}",
      length(var.oidc.scopes) == 0 ? "" : "scopes=${join(" ", var.oidc.scopes)}",
    ]))}",
  ])

  quotas     = join(",", [for name, n in var.quotas : format("%s=%d", name, n) if n != null])
  quota_args = local.quotas == "" ? [] : ["--default-quotas=${local.quotas}"]

  env = var.otlp_endpoint == null ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT = var.otlp_endpoint }
}
