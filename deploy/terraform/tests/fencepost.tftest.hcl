# The provider is a mock with the real one's schema: nothing is asked of a cluster.
mock_provider "kubernetes" {}

variables {
  namespace = "locks"
  image     = "registry.example.com/fencepost:v1.2.3"
  auth      = { jwt_secret = { name = "jwt" } }
}

run "least" {
  command = plan

  assert {
    condition     = output.store == "etcd://fencepost-etcd-0.fencepost-etcd.locks.svc:2379,fencepost-etcd-1.fencepost-etcd.locks.svc:2379,fencepost-etcd-2.fencepost-etcd.locks.svc:2379"
    error_message = "The replicas do not get the three members: ${output.store}"
  }
  assert {
    condition     = output.url == "http://fencepost.locks.svc"
    error_message = "The API is elsewhere: ${output.url}"
  }
}

run "a_store_that_exists" {
  command = plan

  variables {
    etcd  = null
    store = { address = "zookeeper://zk-1:2181,zk-2:2181/locks", username = "fencepost", password_secret = { name = "zk" } }
  }
  assert {
    condition     = output.store == "zookeeper://zk-1:2181,zk-2:2181/locks"
    error_message = "The replicas get another store: ${output.store}"
  }
  assert {
    condition     = length(module.etcd) == 0
    error_message = "An etcd cluster is made beside a store that exists."
  }
}

run "tls_and_sign_in" {
  command = plan
  variables {
    tls     = { secret = "api-tls" }
    oidc    = { issuer = "https://login.example.com/realms/main", client_id = "fencepost", principals = { name = "operators" } }
    ingress = { host = "locks.example.com", class = "nginx", tls_secret = "edge", paths = ["/locks", "/dashboard", "/admin"] }
  }
  assert {
    condition     = output.url == "https://fencepost.locks.svc"
    error_message = "The API is elsewhere: ${output.url}"
  }
}
