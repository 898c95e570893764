// The fence test: it judges any lock. The workers of the systems are in other modules.
module github.com/fencepost/fencepost/fencetest

go 1.26.0
