# Sets each variable to what deploy/helm/values/everything.yaml has, but for store.

module "fencepost" {
  source = "../.."

  namespace  = "fencepost"
  image      = "registry.example.com/fencepost@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  replicas   = 4
  cpu        = "3"
  memory_mib = 1000
  labels     = { team = "storage", "app.kubernetes.io/name" = "ignored" }

  auth = {
    jwt_secret = { name = "jwt", key = "word" }
    jwks       = "https://issuer.example.com/keys"
    issuer     = "https://issuer.example.com"
    audience   = "locks: all # of them"
  }
  tls = {
    secret     = "api"
    client_ca  = { name = "clients", key = "ca.pem" }
    principals = { name = "who", key = "certificates.json" }
  }
  oidc = {
    issuer        = "https://login.example.com"
    client_id     = "fencepost"
    principals    = { name = "operators", key = "claims.json" }
    client_secret = { name = "oidc", key = "word" }
    redirect_url  = "https://locks.example.com/dashboard/sign-in/oidc/callback"
    name_claim    = "email"
    scopes        = ["profile", "groups"]
  }
  quotas           = { metadata_bytes = 1073741824, requests_per_second = 0 }
  token_key_secret = { name = "key", key = "token" }

  etcd = {
    image           = "etcd:v3.7.4"
    members         = 5
    storage         = "1Ti"
    storage_class   = "fast"
    quota_mib       = 2048
    cpu             = "4"
    memory_mib      = 3000
    peer_tls_secret = "peer"
    tls_secret      = "members"
    backup          = { schedule = "3 * * * *", keep_days = 9, image = "busybox:1.38.0", claim = "elsewhere" }
  }

  max_ttl_seconds    = 60
  drain              = { delay_seconds = 30, seconds = 60 }
  log_level          = "debug"
  trusted_proxy_hops = 1
  webhooks           = { allow = ["10.1.0.0/16", "fd00::/8"], allow_http = true, ports = [443, 8443] }
  otlp_endpoint      = "http://collector:4318"
  autoscaling        = { max_replicas = 20, cpu_percent = 60, requests_per_replica = 400000 }
  ingress = {
    host        = "*.example.com"
    class       = "other"
    tls_secret  = "edge"
    paths       = ["/locks", "/dashboard"]
    annotations = { "nginx.ingress.kubernetes.io/proxy-read-timeout" = "120" }
  }
  network_policies = {
    from_namespaces = ["shop"]
    metrics_from    = ["prometheus"]
    egress          = [{ cidr = "fd00::/8", port = 4318 }]
    private_ranges  = ["10.0.0.0/8"]
  }
  monitoring = { namespace = "prometheus", rule_labels = { role = "alerts" } }

  values = {
    imagePullSecrets = [{ name = "registry" }]
    podAnnotations   = { "example.com/a" = "b" }
    nodeSelector     = { disk = "fast" }
    tolerations      = [{ key = "dedicated", operator = "Exists" }]
    affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = {
      nodeSelectorTerms = [{ matchExpressions = [{ key = "zone", operator = "In", values = ["a"] }] }]
    } } }
    extraArgs = ["--max-hold-seconds=60"]
    extraEnv  = [{ name = "GODEBUG", value = "http2debug=1" }]
    etcd      = { nodeSelector = { disk = "fast" }, tolerations = [{ operator = "Exists" }] }
  }
}
