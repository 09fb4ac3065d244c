package browser

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// TestScreenshots shows a busy moment, with a key that is followed and one that waits
// after an error. With -screenshots, it writes docs/images/debug-page-light.png and
// debug-page-dark.png.
func TestScreenshots(t *testing.T) {
	dir := t.TempDir()
	if *writeScreenshots {
		dir = filepath.Join(root, "docs", "images")
	}
	s := newSite(t, "shop", "-workers=8")
	for i, name := range []string{"frontend", "cart", "catalog", "payments", "search"} {
		s.create(name, fmt.Sprintf("10.0.%d.0/24", i))
	}
	s.waitForReady("", 5)
	t.Cleanup(s.neutron.Inject(faults.Fault{Path: "subnets", Method: http.MethodPost, Status: http.StatusServiceUnavailable}))
	s.create("reviews", "10.0.9.0/24")
	s.eventually("the failure is repeated", func() error {
		if journeys := s.journeys("reviews"); len(journeys) > 0 && journeys[0].Retry != nil && journeys[0].Retry.Failures >= 6 {
			return nil
		}
		return errNotYet
	})
	for _, l := range []look{{width: 1440}, {width: 1440, dark: true}} {
		p := s.open(l)
		p.follow(s.namespace + "/cart")
		s.patch("cart", fmt.Sprintf(`{"spec":{"gateway":"10.0.1.%d"}}`, 10+time.Now().Second()))
		p.waitFor("the stages are lit", `document.querySelectorAll('[data-stage].lit').length >= 6`)
		image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		name := "debug-page-light.png"
		if l.dark {
			name = "debug-page-dark.png"
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, image, 0o644); err != nil {
			t.Fatal(err)
		}
		if *writeScreenshots {
			makeSmaller(t, path)
		}
	}
}

// makeSmaller reduces the colors of an image, which the eye does not notice.
func makeSmaller(t *testing.T, path string) {
	t.Helper()
	pngquant, err := program("pngquant", "pngquant")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), pngquant, "--force", "--skip-if-larger", "--ext", ".png", "--strip", path)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("making %s smaller: %v\n%s", path, err, output)
	}
}
