package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/samplecrd/network-controller/test/internal/debian"
)

// The page of the moving pictures is hardly wider than a README shows it. It plays slowly,
// because a screenshot takes a while.
const (
	pictureWidth  = 1040
	pictureSpeed  = 10 // percent
	framesASecond = 12
)

// pictureParts are the parts of the recording that the pictures have: from an expression, in
// milliseconds.
var pictureParts = []struct {
	from  string
	lasts time.Duration
}{
	// An edit while Neutron fails.
	{`when(frame => frame.at > recording.steps[4].at && has(frame, 'watch')) - 200`, 5300 * time.Millisecond},
	// The end of the last wait, and the retry that succeeds.
	{`when(frame => frame.at > recording.steps[5].at && has(frame, 'queue')) - 1500`, 5000 * time.Millisecond},
}

// TestPictures writes watch-light.webp and the others to docs/images from the recording in
// docs/watch: a key travels, its sync fails, and a retry succeeds. For those who prefer no
// motion, watch-light.png and the others have the moment when the key waits.
func TestPictures(t *testing.T) {
	if !*writeScreenshots {
		t.Skip("make screenshots writes the pictures")
	}
	encoder, err := program("img2webp", "webp")
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]look{
		"light": {}, "dark": {dark: true},
		"light-zh-CN": {language: "zh-CN"}, "dark-zh-CN": {dark: true, language: "zh-CN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.width = pictureWidth
			p := openTab(t, serve(t, recording()), l)
			folder, path := t.TempDir(), filepath.Join(root, "docs", "images", "watch-"+name)
			args := append([]string{"-loop", "0", "-lossless", "-m", "4"}, p.film(folder)...)
			still, err := os.ReadFile(filepath.Join(folder, "1-004.png"))
			err = errors.Join(err, os.WriteFile(path+".png", still, 0o644), run(encoder, append(args, "-o", path+".webp")...))
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// installChineseFont installs a font for the Chinese pictures if there is none. A browser
// that runs already does not find it.
func installChineseFont() error {
	if fonts, _ := exec.Command("fc-list", ":lang=zh-cn").Output(); len(fonts) > 0 {
		return nil
	}
	return debian.Install(context.Background(), "fonts-wqy-microhei")
}

// slowly returns how long something takes on the page that is filmed.
func slowly(d time.Duration) time.Duration { return d * 100 / pictureSpeed }

// film writes the frames of a picture to a folder, and returns the encoder's arguments for them.
func (p *tab) film(folder string) (args []string) {
	p.Helper()
	pictureHeight := evaluate[int64](p, `(() => {
		const style = new CSSStyleSheet();
		style.replaceSync('header, #tour, .follow, #explain { display: none !important } #now { min-height: 40px !important }');
		document.adoptedStyleSheets.push(style);
		position.step = 'any';
		speed.append(new Option('', `+fmt.Sprint(pictureSpeed/100.)+`, true, true));
		speed.dispatchEvent(new Event('change'));
		window.has = (frame, stage) => frame.moments?.some(moment => moment.stage === stage);
		window.when = (is) => recording.frames.find(is).at;
		return Math.ceil(diagram.getBoundingClientRect().height) - 16;
	})()`)
	p.do(chromedp.EmulateViewport(pictureWidth, pictureHeight))
	ticker := time.NewTicker(slowly(time.Second / framesASecond))
	defer ticker.Stop()
	for i, part := range pictureParts {
		p.run(`position.value = ` + part.from + `; position.dispatchEvent(new Event('input'))`)
		for begun, number := time.Now(), 0; time.Since(begun) < slowly(part.lasts); number++ {
			shown := time.Now()
			image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			file := filepath.Join(folder, fmt.Sprintf("%d-%03d.png", i, number))
			if err == nil {
				err = os.WriteFile(file, image, 0o600)
			}
			if err != nil {
				p.Fatal(err)
			}
			<-ticker.C
			args = append(args, "-d", strconv.Itoa(int(time.Since(shown).Milliseconds()*pictureSpeed/100)), file)
		}
	}
	return args
}
