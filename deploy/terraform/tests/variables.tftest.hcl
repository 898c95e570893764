# What is refused, each by the variable that is wrong. ./logic runs this file without the provider, on
# variables.tf alone.
mock_provider "kubernetes" {}

variables {
  namespace = "locks"
  image     = "registry.example.com/fencepost:v1.2.3"
  auth      = { jwt_secret = { name = "jwt" } }
}

run "both_stores" {
  command = plan
  variables {
    store = { address = "etcd://etcd:2379" }
  }
  expect_failures = [var.store]
}

run "no_store" {
  command = plan
  variables {
    etcd = null
  }
  expect_failures = [var.store]
}

run "half_a_user" {
  command = plan
  variables {
    etcd  = null
    store = { address = "etcd://etcd:2379", username = "fencepost" }
  }
  expect_failures = [var.store]
}

run "no_key" {
  command = plan
  variables {
    auth = {}
  }
  expect_failures = [var.auth]
}

run "jwks_of_anybody" {
  command = plan
  variables {
    auth = { jwks = "https://issuer.example.com/jwks.json" }
  }
  expect_failures = [var.auth]
}

run "an_image_that_changes" {
  command = plan
  variables {
    image = "registry.example.com/fencepost:latest"
  }
  expect_failures = [var.image]
}

run "an_even_number_of_members" {
  command = plan
  variables {
    etcd = { members = 4 }
  }
  expect_failures = [var.etcd]
}

run "no_room_to_defragment" {
  command = plan
  variables {
    etcd = { storage = "10Gi", quota_mib = 8192 }
  }
  expect_failures = [var.etcd]
}

run "fewer_at_most_than_at_least" {
  command = plan
  variables {
    replicas    = 4
    autoscaling = { max_replicas = 3 }
  }
  expect_failures = [var.autoscaling]
}

run "a_lease_of_a_month" {
  command = plan
  variables {
    max_ttl_seconds = 2592000
  }
  expect_failures = [var.max_ttl_seconds]
}

run "a_range_that_is_none" {
  command = plan
  variables {
    webhooks = { allow = ["10.0.0.0"] }
  }
  expect_failures = [var.webhooks]
}

run "who_signs_but_not_for_whom" {
  command = plan
  variables {
    tls = { secret = "api-tls", client_ca = { name = "clients" } }
  }
  expect_failures = [var.tls]
}

run "an_issuer_in_the_clear" {
  command = plan
  variables {
    oidc = { issuer = "http://login.example.com", client_id = "fencepost", principals = { name = "operators" }, redirect_url = "https://locks.example.com/dashboard/sign-in/oidc/callback" }
  }
  expect_failures = [var.oidc]
}

run "nowhere_to_lead_back_to" {
  command = plan
  variables {
    oidc = { issuer = "https://login.example.com", client_id = "fencepost", principals = { name = "operators" } }
  }
  expect_failures = [var.oidc]
}

run "back_to_what_the_ingress_does_not_have" {
  command = plan
  variables {
    oidc    = { issuer = "https://login.example.com", client_id = "fencepost", principals = { name = "operators" } }
    ingress = { host = "locks.example.com", class = "nginx", tls_secret = "edge" }
  }
  expect_failures = [var.oidc]
}

run "half_a_lock" {
  command = plan
  variables {
    quotas = { held_locks = 0.5 }
  }
  expect_failures = [var.quotas]
}

run "more_than_a_server_takes" {
  command = plan
  variables {
    quotas = { webhooks = 1001 }
  }
  expect_failures = [var.quotas]
}
