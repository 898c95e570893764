// Package sample has one of each thing that the generator treats in its own way.
package sample

// @title       Sample
// @version     1
// @tag.name        things
// @tag.description Things.
// @securityDefinitions.apikey bearer
// @in                         header
// @name                       Authorization

// putThing makes a thing.
//
// @Summary     Make a thing
// @Description Made at once.
// @Tags        things
// @Security    bearer[things:write]
// @Security    bearer[admin]
// @Param       name path  string true  "Name"
// @Param       size query int    false "Size"
// @Param       body body  Body   false "How"
// @Success     201 {object} Thing "Made"
// @Success     204 "There already"
// @Failure     400 {object} Problem "invalid_request"
// @Failure     404 {string} string  "No such page"
// @Failure     423 {object} Problem "lock_held, wait_timeout"
// @Failure     503 {object} Problem "draining"
// @Header      503 {string} Location "Where it is"
// @Router      /things/{name} [put]
func putThing() {}

// Body says how.
type Body struct {
	// HowLong it lasts, over
	// two lines.
	HowLong *float64 `json:"how_long,omitempty"`
	// Mode of it.
	Mode *string `json:"mode,omitempty" enums:"a,b"`
	// Metadata of it.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Needed by all.
	Needed string `json:"needed"`
}

// Thing is what is made.
type Thing struct {
	// Fence of it.
	Fence uint64 `json:"fence" format:"int64"`
	// Count of it.
	Count int `json:"count,omitempty"`
	// At that time.
	At string `json:"at" format:"date-time"`
	// Part of it.
	Part Part `json:"part"`
}

// Part is a part.
type Part struct {
	// Name <of> it.
	Name string `json:"name"`
}

// Problem is an error.
type Problem struct {
	// Code of it.
	Code string `json:"code"`
}
