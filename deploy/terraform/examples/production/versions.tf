terraform {
  required_version = ">= 1.9" # validations that read other variables

  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 3.0, < 4.0"
    }
  }
}
