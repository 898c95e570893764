module github.com/fencepost/fencepost/api

go 1.26.0
