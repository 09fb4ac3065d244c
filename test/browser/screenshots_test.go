package browser

import (
	"fmt"
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
	names := []string{"frontend", "cart", "catalog", "payments", "search", "reviews"}
	for i, name := range names {
		s.create(name, fmt.Sprintf("10.0.%d.0/24", i))
	}
	s.waitForReady("", len(names))
	heal := s.failEdit("cart", 3)
	for i, l := range []look{{width: 1440}, {width: 1440, dark: true}} {
		p := s.open(t, l)
		p.do(chromedp.EmulateViewport(l.width, 1250), chromedp.Evaluate[chromedp.Void](`location.hash = "`+s.namespace+`/cart"`))
		p.waitFor("the page shows the journeys", `document.querySelectorAll('#journeys details').length >= 4`)
		fast := s.neutron.Inject(faults.Fault{Work: 300 * time.Millisecond})
		for n, name := range names {
			if name != "cart" {
				s.patch(name, fmt.Sprintf(`{"spec":{"gateway":"10.0.%d.%d"}}`, n, 10+i))
			}
		}
		s.create(fmt.Sprintf("returns-%d", i), fmt.Sprintf("10.1.%d.0/24", i))
		p.waitFor("workers are busy", `document.querySelectorAll('#lanes .busy').length >= 2 && document.querySelector('[data-stage=neutron].lit')`)
		image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		fast()
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
	heal()
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
