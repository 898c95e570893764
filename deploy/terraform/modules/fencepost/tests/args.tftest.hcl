# What the server is started with, from the variables alone. ../../logic runs this file without the
# provider, on args.tf and variables.tf.
mock_provider "kubernetes" {}

variables {
  name               = "fencepost"
  namespace          = "locks"
  labels             = { "app.kubernetes.io/instance" = "fencepost" }
  image              = "fencepost:v1.2.3"
  replicas           = 2
  cpu                = "500m"
  memory_mib         = 1000
  auth               = { jwt_secret = { name = "jwt", key = "secret" } }
  tls                = null
  oidc               = null
  quotas             = {}
  token_key_secret   = null
  store              = { address = "etcd://etcd-1:2379,etcd-2:2380", ca_secret = "ca", client_tls_secret = "client" }
  store_network      = { cidr = "10.9.0.0/24" }
  max_ttl_seconds    = 3600
  drain              = { delay_seconds = 5, seconds = 20 }
  log_level          = "info"
  trusted_proxy_hops = 0
  webhooks           = { allow = [], allow_http = false, ports = [] }
  otlp_endpoint      = null
  autoscaling        = null
  ingress            = null
  network_policies   = { enabled = true, from_namespaces = [], metrics_from = ["monitoring"], egress = [], private_ranges = ["10.0.0.0/8"] }
}

run "least" {
  command = plan

  assert {
    condition = toset(local.args) == toset([
      "--listen=0.0.0.0:8080", "--store=etcd://etcd-1:2379,etcd-2:2380", "--store-ca=/etc/fencepost/store-ca/ca.crt",
      "--store-cert=/etc/fencepost/store-tls/tls.crt", "--store-key=/etc/fencepost/store-tls/tls.key", "--jwt-secret-file=/etc/fencepost/jwt/secret",
      "--max-ttl-seconds=3600", "--drain-delay-seconds=5", "--drain-seconds=20", "--log-level=info",
    ])
    error_message = "What was not asked for is passed on, or what was is not: ${join(" ", local.args)}"
  }
  assert {
    condition     = toset(keys(local.secrets)) == toset(["jwt", "store-ca", "store-tls"]) && length(local.config_maps) == 0 && length(local.env) == 0
    error_message = "Other files are mounted than the flags name: ${join(" ", keys(local.secrets))}"
  }
}

run "each_file_that_a_flag_names_is_mounted" {
  command = plan

  variables {
    token_key_secret = { name = "key", key = "token" }
    store            = { address = "zookeeper://zk:2181/locks", username = "fencepost", password_secret = { name = "zk", key = "word" } }
    tls              = { secret = "api", client_ca = { name = "clients", key = "ca.pem" }, principals = { name = "who", key = "principals.json" } }
    oidc = {
      issuer       = "https://login.example.com", client_id = "fencepost", client_secret = { name = "oidc", key = "secret" }
      redirect_url = "https://locks.example.com/dashboard/sign-in/oidc/callback", principals = { name = "operators", key = "claims.json" }, scopes = []
    }
  }
  assert {
    condition = length(setsubtract(
      flatten([for a in local.args : regexall("/etc/fencepost/[^ ,]+", a)]),
      concat(
        flatten([for k, s in local.secrets : [for file in values(s.files) : "${local.files}/${k}/${file}"]]),
        [for k, m in local.config_maps : "${local.files}/${k}/${m.key}"],
      )
    )) == 0
    error_message = "A file that the server is told of is not there: ${join(" ", local.args)}"
  }
  assert {
    condition     = length(flatten([for a in local.args : regexall("/etc/fencepost/[^ ,]+", a)])) == 9
    error_message = "Something that was given is not used: ${join(" ", local.args)}"
  }
}

run "back_to_the_ingress" {
  command = plan

  variables {
    oidc    = { issuer = "https://login.example.com", client_id = "fencepost", principals = { name = "operators", key = "principals.json" }, scopes = [] }
    ingress = { host = "locks.example.com", class = "nginx", tls_secret = "edge", paths = ["/locks", "/dashboard"], annotations = {} }
  }
  assert {
    condition     = strcontains(join(" ", local.args), "redirect_url=https://locks.example.com/dashboard/sign-in/oidc/callback")
    error_message = "Who signed in is sent elsewhere: ${join(" ", local.args)}"
  }
}

run "quotas" {
  command = plan

  variables {
    quotas = { held_locks = 5000, metadata_bytes = 1073741824, requests_per_second = 0 }
  }
  assert {
    condition = contains(
      local.args, "--default-quotas=held_locks=5000,metadata_bytes=1073741824,requests_per_second=0",
    )
    error_message = "The server has other limits: ${join(" ", local.args)}"
  }
}
