module github.com/fencepost/fencepost/client

go 1.26.0

require github.com/fencepost/fencepost/api v0.0.0

replace github.com/fencepost/fencepost/api => ../api
