package main

// deployBugs break what is said of a build.
func deployBugs() []Bug {
	return []Bug{
		{
			Name: "sbom-what-builds", Breaks: "what only builds the dashboard is not listed as a part of the program",
			File: "deploy/sbom/npm.go", Anchor: "if !installed || p.Dev || p.DevOptional {", Becomes: "if !installed || p.DevOptional {",
			In: "./deploy/sbom", Run: "^TestFromNPM$|^TestDashboard$",
		},
		{
			Name: "sbom-by-folder", Breaks: "an npm package is listed by its name, and not by that of the folder it is in",
			File: "deploy/sbom/npm.go", Anchor: "		if p.Name == \"\" {\n", Becomes: "		if p.Name == \"\" || inFolder != \"\" {\n",
			In: "./deploy/sbom", Run: "^TestFromNPM$",
		},
	}
}
