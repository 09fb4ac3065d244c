package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	chineseIndex      = "docs/zh-CN/README.md"
	chineseConditions = "docs/zh-CN/reference/conditions.md"
)

var (
	// toDocument is a link to another document, announced as English or not.
	toDocument = regexp.MustCompile(`\]\(([^):#]+\.md)(?:#[^)]+)?\)(（英文）)?`)
	// splitWord is a line that ends within a sentence: it is shown with a space there.
	splitWord = regexp.MustCompile(`(?m)^[^|#\n]*\p{Han}\n *\p{Han}.*`)
	// secondWord is another word for what the glossary has.
	secondWord = regexp.MustCompile("实验台|在途|属主引用|错误消息|摘掉|移除 finalizer|带着令牌|RBAC[^。]*动作|事件 `[A-Z]|\\p{Han} ?events? ")
	// notBold shows its asterisks: CommonMark takes those between a mark and a letter for no end.
	notBold = regexp.MustCompile(`(?m)^(?:- |\d\. )?\*\*[^*\n]*\p{P}\*\*[\p{L}\p{N}]`)
	drawing = regexp.MustCompile("(?ms)^## (?:The picture|图)\n.*?^##|^```mermaid.*?^```$")
	comment = regexp.MustCompile(`(?m)^[ \t]*#.*\n|[ \t]*#.*$`)
)

// TestChinese: a Chinese document and the English one link to each other, and have the
// same headings, tables and code. The index has every Chinese document, and no line ends
// within a sentence.
func TestChinese(t *testing.T) {
	structured := []string{ // in their own way
		"docs/zh-CN/learn/README.md", "docs/zh-CN/learn/glossary.md", chineseConditions,
	}
	all := documents(t)
	for chinese, text := range all {
		english := translated(chinese)
		if english == "" {
			continue
		}
		for from, to := range map[string]string{chinese: english, english: chinese, chineseIndex: chinese} {
			if target, err := filepath.Rel(filepath.Dir(from), to); err != nil || !strings.Contains(all[from], "]("+target) {
				t.Errorf("%s does not link to %s", from, to)
			}
		}
		if line := splitWord.FindString(fence.ReplaceAllString(text, "")); line != "" {
			t.Errorf("%s has a line that does not end after a punctuation mark: %s", chinese, line)
		}
		if bold := notBold.FindString(text); bold != "" {
			t.Errorf("%s shows the asterisks of %s", chinese, bold)
		}
		if word := secondWord.FindString(text); word != "" && chinese != "docs/zh-CN/learn/glossary.md" {
			t.Errorf("%s has %q, for which the glossary has another word", chinese, word)
		}
		if slices.Contains(structured, chinese) {
			continue
		}
		if got, want := structure(text), structure(all[english]); got != want {
			t.Errorf("%s has the structure\n%s\nand %s\n%s", chinese, got, english, want)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ \| .*? \| `).FindAllString(all["docs/learn/README.md"], -1) {
		if !strings.Contains(all["docs/zh-CN/learn/README.md"], strings.ReplaceAll(row, "](../", "](../../")) {
			t.Errorf("the Chinese reading order lacks %s", row)
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(all["docs/reference/conditions.md"], -1) {
		if !strings.Contains(all[chineseConditions], "`"+match[1]+"`") {
			t.Errorf("%s does not have the reason %s", chineseConditions, match[1])
		}
	}
}

// TestEnglishIsAnnounced: a Chinese document links to Chinese ones, where there is one,
// and says of others that they are in English.
func TestEnglishIsAnnounced(t *testing.T) {
	all, chinese := documents(t), map[string]bool{}
	for file := range all {
		chinese[translated(file)] = true
	}
	for file, text := range all {
		if file != chineseIndex && translated(file) == "" {
			continue
		}
		for _, match := range toDocument.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			linked := filepath.Join(filepath.Dir(file), match[1])
			switch {
			case linked == chineseIndex || translated(linked) != "" || linked == translated(file):
			case chinese[linked]:
				t.Errorf("%s links to %s, which there is in Chinese", file, linked)
			case match[2] == "":
				t.Errorf("%s does not announce that %s is in English", file, linked)
			}
		}
	}
}

// translated returns the English document that a Chinese one translates, or "".
func translated(file string) string {
	switch rest, mirrored := strings.CutPrefix(file, "docs/zh-CN/"); {
	case file == chineseIndex:
		return ""
	case file == "docs/zh-CN/learn/glossary.md":
		return "docs/learn/README.md"
	case mirrored:
		return "docs/" + rest
	case strings.HasSuffix(file, ".zh-CN.md"):
		return strings.TrimSuffix(file, ".zh-CN.md") + ".md"
	}
	return ""
}

// structure returns the levels of headings, the lengths of tables, and the code of a
// document. Comments in code and drawings may be translated.
func structure(text string) string {
	var all strings.Builder
	rows := 0
	for line := range strings.Lines(fence.ReplaceAllString(text, "") + "\n\n") {
		switch {
		case strings.HasPrefix(line, "|"):
			rows++
			for _, span := range spans(line) { // a row names the same tests
				all.WriteString(testName.FindString(span))
			}
			continue
		case rows > 0:
			all.WriteString(strings.Repeat("|", rows) + "\n")
			rows = 0
		}
		if match := heading.FindStringSubmatch(strings.TrimSpace(line)); match != nil {
			all.WriteString(match[1] + "\n")
		}
	}
	for _, match := range fence.FindAllStringSubmatch(drawing.ReplaceAllString(text, ""), -1) {
		all.WriteString("```" + match[1] + "\n" + comment.ReplaceAllString(match[3], ""))
	}
	return all.String()
}
