package main

import (
	"runtime/debug"
	"testing"
)

func TestBuild(t *testing.T) {
	t.Parallel()
	tree := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: "abc"},
		},
	}
	for name, tc := range map[string]struct {
		linker build
		info   *debug.BuildInfo
		want   build
	}{
		"nothing is known": {want: build{version: "dev"}},
		"a working tree": {
			info: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, want: build{version: "dev"},
		},
		"go install of a version": {info: tree, want: build{version: "v1.2.3", commit: "abc"}},
		"the linker set both": {
			linker: build{version: "v2.0.0", commit: "def"}, info: tree,
			want: build{version: "v2.0.0", commit: "def"},
		},
	} {
		if got := tc.linker.or(tc.info); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
