package invoices_test

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/examples/settlement/invoices"
)

var update = flag.Bool("update", false, "write ../invoices.csv")

func TestTheFileIsWhatGenerateMakes(t *testing.T) {
	const file = "../invoices.csv"
	var want bytes.Buffer
	if err := invoices.Write(&want, invoices.Generate()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Fatalf("%s differs from Generate; run the test with -update if that is meant", file)
	}
	read, err := invoices.Read(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(read, invoices.Generate()) {
		t.Fatal("Read does not return what Write wrote")
	}
}

func TestReadRefusesDamagedLines(t *testing.T) {
	for name, text := range map[string]string{
		"amount is no number": "batch,invoice,amount_cents\ninvoices:00,INV-0001,12.5\n",
		"field missing":       "batch,invoice\ninvoices:00,INV-0001\n",
	} {
		if _, err := invoices.Read(bytes.NewBufferString(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
