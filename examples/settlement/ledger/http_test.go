package ledger_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/examples/settlement/ledger"
)

func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	j := open(t, filepath.Join(t.TempDir(), "ledger.db"), true)
	server := httptest.NewServer(ledger.Handler(j, slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close)
	return server
}

func post(t *testing.T, url, fence, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, url, strings.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Worker", "bash")
	if fence != "" {
		request.Header.Set("Fence", fence)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestAnswers(t *testing.T) {
	server := newServer(t)
	batch := server.URL + "/batches/invoices:07"
	const pay = `{"invoice":"INV-0141","amount_cents":100}`
	for _, step := range []struct {
		what, path, fence, body string
		status                  int
		answer                  string
	}{
		{"opens", "/open", "5", "", 200, ""},
		{"pays", "/settlements", "5", pay, 201, ""},
		{"repeats", "/settlements", "5", pay, 200, ""},
		{
			"changes the amount", "/settlements", "5", `{"invoice":"INV-0141","amount_cents":101}`, 422,
			`"code":"different_amount"`,
		},
		{"the next one opens and reads", "/open", "9", "", 200, "INV-0141\n"},
		{
			"writes late", "/settlements", "5", `{"invoice":"INV-0142","amount_cents":100}`, 409,
			`"code":"stale_fence"`,
		},
		{"opens late", "/open", "5", "", 409, `"code":"stale_fence"`},
		{"has no fence", "/settlements", "", pay, 400, `"code":"invalid_request"`},
		{"has a fence of zero", "/settlements", "0", pay, 400, `"code":"invalid_request"`},
		{"has a fence in words", "/open", "nine", "", 400, `"code":"invalid_request"`},
		{"sends no JSON", "/settlements", "9", "x", 400, `"code":"invalid_request"`},
		{
			"sends an unknown field", "/settlements", "9", `{"invoice":"INV-0142","amount_cents":1,"x":1}`,
			400, `"code":"invalid_request"`,
		},
		{"names no invoice", "/settlements", "9", `{"amount_cents":1}`, 400, `"code":"invalid_request"`},
	} {
		status, answer := post(t, batch+step.path, step.fence, step.body)
		if status != step.status || !strings.Contains(answer, step.answer) {
			t.Errorf(
				"a worker %s: %d %q, want %d with %q", step.what, status, answer, step.status, step.answer,
			)
		}
	}
}

func TestTheRefusalNamesBothFences(t *testing.T) {
	server := newServer(t)
	post(t, server.URL+"/batches/a/open", "9", "")
	_, answer := post(t, server.URL+"/batches/a/open", "5", "")
	var problem struct {
		Status       int
		Fence, Known int64
	}
	if err := json.Unmarshal([]byte(answer), &problem); err != nil {
		t.Fatal(err)
	}
	if problem.Status != 409 || problem.Fence != 5 || problem.Known != 9 {
		t.Errorf("problem %+v, want 409 with fence 5 and known 9", problem)
	}
}

func TestTheAccountIsJSON(t *testing.T) {
	server := newServer(t)
	post(t, server.URL+"/batches/a/open", "9", "")
	post(t, server.URL+"/batches/a/open", "5", "")
	for path, want := range map[string]int{"/journal": 1, "/refusals": 1} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var list []map[string]any
		err = json.NewDecoder(response.Body).Decode(&list)
		response.Body.Close()
		if err != nil || len(list) != want {
			t.Errorf("%s: %v, error %v; want %d", path, list, err, want)
		}
	}
}
