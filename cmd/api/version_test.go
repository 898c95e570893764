package main

import (
	"runtime/debug"
	"testing"
)

func TestBuild(t *testing.T) {
	t.Parallel()
	tree := func(settings ...string) []debug.BuildSetting {
		list := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}}
		for i := 0; i < len(settings); i += 2 {
			list = append(list, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return list
	}
	for name, tc := range map[string]struct {
		linker build
		info   *debug.BuildInfo
		want   build
	}{
		"nothing is known":           {want: build{version: "dev"}},
		"without a working tree":     {info: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, want: build{version: "dev"}},
		"go install of a version":    {info: &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, want: build{version: "v1.2.3"}},
		"a working tree":             {info: &debug.BuildInfo{Settings: tree("vcs.revision", "abc", "vcs.modified", "false")}, want: build{version: "dev", commit: "abc"}},
		"a working tree in disorder": {info: &debug.BuildInfo{Settings: tree("vcs.modified", "true", "vcs.revision", "abc")}, want: build{version: "dev", commit: "abc-dirty"}},
		"changed, since nobody knows what": {
			info: &debug.BuildInfo{Settings: tree("vcs.modified", "true")}, want: build{version: "dev"},
		},
		"the linker was told": {
			linker: build{version: "v2.0.0", commit: "def"},
			info:   &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: tree("vcs.revision", "abc")},
			want:   build{version: "v2.0.0", commit: "def"},
		},
		"the linker was told half": {
			linker: build{version: "v2.0.0"}, info: &debug.BuildInfo{Settings: tree("vcs.revision", "abc")},
			want: build{version: "v2.0.0", commit: "abc"},
		},
	} {
		if got := tc.linker.or(tc.info); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
