package web

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	var page bytes.Buffer
	err := Report(&page, []byte(`{"run":{"name":"</script><script>alert(1)</script>"}}`))
	if errors.Is(err, ErrNotBuilt) {
		t.Skip("web/dist is not built: make web")
	}
	if err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if strings.Contains(text, "<script>alert(1)") {
		t.Error("a report can end the script element it lies in")
	}
	if !strings.Contains(text, `\u003c/script\u003e`) {
		t.Error("the report is not in the page")
	}
	for _, outside := range []string{`src="http`, `href="http`, "url(http", `src="/`, `href="/`} {
		if strings.Contains(text, outside) {
			t.Errorf("the page needs something outside it: %s", outside)
		}
	}
}
