package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"path/filepath"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/swaggo/swag"
)

// parse reads the annotations of the packages in folders, and those about the
// whole from one file. A field is required unless its tag has omitempty, or says that it is
// optional.
func parse(folders []string, general string) (*openapi2.T, error) {
	p := swag.New(swag.SetDebugger(log.New(io.Discard, "", 0)), swag.SetUseStructName(true))
	p.RequiredByDefault = true
	general, err := filepath.Abs(general)
	if err != nil {
		return nil, err
	}
	within, err := filepath.Abs(folders[0])
	if err != nil {
		return nil, err
	}
	if general, err = filepath.Rel(within, general); err != nil {
		return nil, err
	}
	if err := p.ParseAPIMultiSearchDir(folders, general, 0); err != nil {
		return nil, fmt.Errorf("read the annotations: %w", err)
	}
	text, err := json.Marshal(p.GetSwagger())
	if err != nil {
		return nil, err
	}
	var doc openapi2.T
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read what swag wrote: %w", err)
	}
	for _, folder := range folders {
		if err := describeTypes(folder, doc.Definitions); err != nil {
			return nil, err
		}
	}
	return &doc, addDefaults(folders[0], &doc)
}
