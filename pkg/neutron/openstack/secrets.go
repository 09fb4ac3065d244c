package openstack

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// withoutSecrets replaces secrets in a text, also if the text contains them encoded:
// a server may echo a request in its error.
func withoutSecrets(text string, secrets []string) string {
	var all []string
	for _, secret := range secrets {
		all = append(all, encodingsOf(secret)...)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // some contain others
	for _, secret := range slices.Compact(all) {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// encodingsOf returns the forms that a secret may have in a text, itself included.
func encodingsOf(secret string) []string {
	quoted := strings.Trim(strconv.Quote(secret), `"`)
	inJSON, _ := json.Marshal(secret) // a string cannot fail
	all := []string{secret, quoted, strings.Trim(string(inJSON), `"`), html.EscapeString(secret)}
	for _, escaped := range []string{url.QueryEscape(secret), url.PathEscape(secret)} {
		all = append(all, escaped, percent.ReplaceAllStringFunc(escaped, strings.ToLower))
	}
	inHex := hex.EncodeToString([]byte(secret))
	all = append(all, inHex, strings.ToUpper(inHex))
	all = append(all, inBase64(secret)...)
	return slices.DeleteFunc(all, func(form string) bool { return form == "" || form != secret && len(form) < 4 })
}

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

// inBase64 returns the characters that a text in base64 has if it contains a
// secret. They depend on the position of the secret, modulo 3.
func inBase64(secret string) (all []string) {
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			encoded := encoding.EncodeToString(slices.Concat(make([]byte, before), []byte(secret)))
			all = append(all, encoded[(8*before+5)/6:8*(before+len(secret))/6])
		}
	}
	return all
}
