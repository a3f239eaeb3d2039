package secrets

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Alphabets of samples.
const (
	digits  = "0123456789"
	hex     = digits + "abcdef"
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower   = "abcdefghijklmnopqrstuvwxyz"
	letters = upper + lower
	alnum   = letters + digits
	base32  = upper + "234567"
	base64s = alnum + "+/"
)

// sample is n characters of an alphabet. No secret is in this file as it is, so that
// other scanners do not report the file.
func sample(alphabet string, n int) string {
	rnd := rand.New(rand.NewPCG(7, uint64(n)))
	var text strings.Builder
	for range n {
		text.WriteByte(alphabet[rnd.IntN(len(alphabet))])
	}
	return text.String()
}

func pem(kind, newline string, lines int) string {
	text := "-----BEGIN " + kind + "-----" + newline
	for range lines {
		text += sample(base64s, 64) + newline
	}
	return text + "-----END " + kind + "-----"
}

// samples has texts for each rule: the text before the secret, the secret, and the text
// after it.
var samples = map[string][][3]string{
	"private-key": {
		{"the key:\n", pem("RSA PRIVATE"+" KEY", "\n", 13), "\nand more"},
		{`{"private_key":"`, pem("PRIVATE"+" KEY", `\n`, 20), `"}`},
		{"", pem("OPENSSH PRIVATE"+" KEY", "\r\n", 6), ""},
		{"", pem("PGP PRIVATE"+" KEY BLOCK", "\n", 80), ""},
	},
	"age-secret-key":            {{"", "AGE-SECRET-" + "KEY-1" + sample("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), "\n"}},
	"nats-seed":                 {{"nats://", "SU" + "A" + sample(upper[:16], 1) + sample(base32, 54), "@host"}, {"SEED------\n", "SO" + "A" + sample(upper[:16], 1) + sample(base32, 54), "\n---"}},
	"jwt":                       {{"Cookie: s=", "ey" + "J" + sample(alnum, 30) + ".ey" + "J" + sample(alnum, 60) + "." + sample(alnum, 43), ";"}},
	"aws-access-key":            {{"id ", "AK" + "IA" + sample(base32, 16), ","}, {"", "AS" + "IA" + sample(base32, 16), ""}},
	"aws-secret-key":            {{"AWS_SECRET_ACCESS_KEY=", sample(base64s, 40), "\n"}, {`"SecretAccessKey": "`, sample(base64s, 40), `"`}},
	"aws-bedrock-key":           {{"", "AB" + "SK" + sample(base64s, 128), ""}},
	"gcp-api-key":               {{"?key=", "AI" + "za" + sample(alnum, 35), "&x"}},
	"gcp-oauth-token":           {{"", "ya" + "29." + sample(alnum, 120), ""}},
	"gcp-oauth-secret":          {{"", "GOC" + "SPX-" + sample(alnum, 28), ""}},
	"azure-client-secret":       {{"=", "abc8" + "Q~" + sample(alnum, 34), ";"}},
	"azure-storage-key":         {{"AccountName=x;AccountKey=", sample(base64s, 86) + "==", ";E"}},
	"digitalocean-token":        {{"", "do" + "p_v1_" + sample(hex, 64), ""}},
	"fly-token":                 {{"", "fm" + "2_" + sample(base64s, 200), ""}},
	"heroku-key":                {{"", "HR" + "KU-AA" + sample(alnum, 58), ""}},
	"databricks-token":          {{"", "da" + "pi" + sample(hex, 32), ""}},
	"vault-token":               {{"", "hv" + "s." + sample(alnum, 95), ""}},
	"terraform-token":           {{"", sample(alnum, 14) + ".atlas" + "v1." + sample(alnum, 67), ""}},
	"pulumi-token":              {{"", "pu" + "l-" + sample(hex, 40), ""}},
	"planetscale-token":         {{"", "pscale" + "_tkn_" + sample(alnum, 43), ""}},
	"doppler-token":             {{"", "dp" + ".pt." + sample(alnum, 43), ""}},
	"onepassword-token":         {{"", "ops_" + "ey" + "J" + sample(alnum, 400), ""}},
	"cloudflare-origin-key":     {{"", "v1.0" + "-" + sample(hex, 24) + "-" + sample(hex, 146), ""}},
	"github-token":              {{"git clone https://x:", "gh" + "p_" + sample(alnum, 36), "@github.com/a/b"}, {"", "gh" + "s_" + sample(alnum, 60), ""}},
	"github-fine-grained-token": {{"", "github" + "_pat_" + sample(alnum, 82), "\n"}},
	"gitlab-token":              {{"", "gl" + "pat-" + sample(alnum, 20), " "}},
	"bitbucket-token":           {{"", "AT" + "ATT3" + sample(alnum, 186), ""}},
	"npm-token":                 {{"//registry.npmjs.org/:_authToken=", "np" + "m_" + sample(alnum, 36), "\n"}},
	"pypi-token":                {{"password = ", "pypi-" + "AgEIcHlwaS5vcmc" + sample(alnum, 150), "\n"}},
	"rubygems-token":            {{"", "rubygems" + "_" + sample(hex, 48), ""}},
	"docker-token":              {{"", "dckr" + "_pat_" + sample(alnum, 27), ""}},
	"artifactory-token":         {{"", "AK" + "Cp" + sample(alnum, 69), ""}},
	"sentry-token":              {{"", "sntry" + "u_" + sample(hex, 64), ""}},
	"grafana-token":             {{"", "gl" + "sa_" + sample(alnum, 32) + "_" + sample(hex, 8), ""}},
	"linear-token":              {{"", "lin" + "_api_" + sample(alnum, 40), ""}},
	"postman-token":             {{"", "PM" + "AK-" + sample(hex, 24) + "-" + sample(hex, 34), ""}},
	"anthropic-key":             {{"x-api-key: ", "sk-" + "ant-api03-" + sample(alnum, 93) + "AA", "\n"}},
	"openai-key":                {{"OPENAI_API_KEY=", "sk-" + "proj-" + sample(alnum, 156), "\n"}, {"", "sk-" + sample(alnum, 20) + "T3Blbk" + "FJ" + sample(alnum, 20), ""}},
	"openrouter-key":            {{"", "sk-" + "or-v1-" + sample(hex, 64), ""}},
	"huggingface-token":         {{"", "h" + "f_" + sample(letters, 34), ""}},
	"perplexity-key":            {{"", "pp" + "lx-" + sample(alnum, 48), ""}},
	"groq-key":                  {{"", "gs" + "k_" + sample(alnum, 52), ""}},
	"xai-key":                   {{"", "xa" + "i-" + sample(alnum, 80), ""}},
	"slack-token":               {{"", "xo" + "xb-" + sample(digits, 12) + "-" + sample(digits, 12) + "-" + sample(alnum, 24), ""}, {"", "xa" + "pp-1-" + sample(upper, 11) + "-" + sample(digits, 13) + "-" + sample(hex, 64), ""}},
	"slack-webhook":             {{"https://hooks.slack" + ".com/services/", sample(alnum, 44), ""}},
	"stripe-key":                {{"", "sk" + "_live_" + sample(alnum, 24), ""}, {"", "wh" + "sec_" + sample(alnum, 32), ""}},
	"square-token":              {{"", "sq0" + "atp-" + sample(alnum, 22), ""}},
	"shopify-token":             {{"", "shp" + "at_" + sample(hex, 32), ""}},
	"sendgrid-key":              {{"", "S" + "G." + sample(alnum, 22) + "." + sample(alnum, 43), ""}},
	"twilio-key":                {{"TWILIO_API_KEY=", "S" + "K" + sample(hex, 32), ""}},
	"mailgun-key":               {{"mailgun: ", "ke" + "y-" + sample(hex, 32), ""}},
	"telegram-token":            {{"telegram bot ", sample("123456789", 9) + ":A" + sample(alnum, 34), ""}},
	"discord-webhook":           {{"https://discord" + ".com/api/webhooks/", sample("123456789", 18) + "/" + sample(alnum, 68), ""}},
	"notion-token":              {{"", "nt" + "n_" + sample(digits, 11) + sample(alnum, 35), ""}},
	"url-password":              {{"postgres://app:", "q9-" + sample(alnum, 9), "@db:5432/x"}, {"amqps://", "", ""}},
	"dsn-password":              {{"host=db user=ann password=", sample(letters, 9), " sslmode=require"}, {"dbname=logs port=5432 password=", "'two w" + "ords 7'", "\n"}},
	"dsn-first-password":        {{"password=", sample(letters, 9), " connect_timeout=3 host=db"}},
	"authorization-header":      {{"Authorization: Bearer ", sample(alnum, 40), "\n"}, {`"Authorization": "Basic `, sample(alnum, 24) + "==", `"`}},
	"generic-password":          {{"DB_PASSWORD=", "hunter2-" + sample(alnum, 6), "\n"}, {`\"password\": \"`, "T0" + sample(alnum, 10), `\"`}, {"password: '", "Cor8ect-horse!", "'"}},
	"generic-secret":            {{"client_secret: ", sample(alnum, 32), "\n"}, {`api_key = "`, sample(alnum, 32), `"`}, {`{"SECRET_KEY":"`, sample(alnum, 50), `"}`}},
}

// TestRulesCompile: the kept rule set is accepted.
func TestRulesCompile(t *testing.T) {
	if _, err := New(Rules()...); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Name] || r.Finds == "" {
			t.Errorf("rule %q: two rules of the name, or no description", r.Name)
		}
		seen[r.Name] = true
	}
	for name := range samples {
		if !seen[name] {
			t.Errorf("samples of %q, which is no rule", name)
		}
	}
}

// Every rule finds its samples, exactly, in any surroundings, and masks them.
func TestEveryRuleFindsItsSamples(t *testing.T) {
	filler := strings.Repeat("Nothing of interest.\n", 30)
	for _, r := range Rules() {
		if len(samples[r.Name]) == 0 {
			t.Errorf("rule %q has no sample", r.Name)
		}
		for _, s := range samples[r.Name] {
			if s[1] == "" {
				continue
			}
			for _, around := range []string{"", filler, "π→ "} {
				text := around + s[0] + s[1] + s[2] + "\n" + around
				masked, found := Default().Mask([]byte(text))
				if want := around + s[0] + "[secret:" + r.Name + "]" + s[2] + "\n" + around; string(masked) != want {
					t.Errorf("%s: %d findings %v: %.200s\nbecame\n%.200s", r.Name, len(found), found, strings.TrimPrefix(text, around), strings.TrimPrefix(string(masked), around))
				}
			}
		}
	}
}

// A secret is found, and masked whole, in the percent form of a URL.
func TestPercentForm(t *testing.T) {
	for _, every := range []bool{false, true} {
		for name := range samples {
			for _, s := range samples[name] {
				if s[1] == "" || strings.ContainsAny(s[1], "\n\r") {
					continue
				}
				text := percent(s[0], every) + percent(s[1], every) + percent(s[2], every)
				masked, _ := Default().Mask([]byte(text))
				if want := percent(s[0], every) + "[secret:" + name + "]" + percent(s[2], every); string(masked) != want {
					t.Errorf("%s: %.200s\nbecame\n%.200s\nwant\n%.200s", name, text, masked, want)
				}
			}
		}
	}
}

// percent returns text in percent form: each character, or each one that is no letter or digit.
func percent(text string, every bool) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if every || !strings.ContainsRune(alnum, rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Texts that look like secrets and are none.
func TestHarmlessTexts(t *testing.T) {
	for _, text := range []string{
		"password: string", "password = os.Getenv(\"DB_PASSWORD\")", "api_key = '<your API key here>'", "API_KEY=your_api_key_12345678",
		`"api_key":"**********"`, "const apiKey = await getApiKeyForModel(model)", "password=${DB_PASSWORD}", "AKIAIOSFODNN7EXAMPLE",
		"https://example.com:8080/a@b", "https://oauth2:${GITLAB_TOKEN}@gitlab.com/u/r", "postgres://postgres:postgres@localhost/db",
		"TestFlow_StringRedactsSecrets: passed", "ghp_mytoken", "secret: github.com/convlog/convlog/secrets", "client_secret = process.env.CLIENT_SECRET",
		"sha256:" + sample(hex, 64), "commit " + sample(hex, 40), "data:image/png;base64," + sample(base64s, 400), "[secret:generic-password]",
		"password=[secret:generic-password]", "-----BEGIN PUBLIC KEY-----\n" + sample(base64s, 64), "-----BEGIN CERTIFICATE-----\n" + sample(base64s, 64),
		"toolu_" + sample(alnum, 24), "call_" + sample(alnum, 24), "resp_" + sample(hex, 48), sample(hex, 8) + "-" + sample(hex, 4),
		"secret_access_key: /run/secrets/aws_secret_access_key_file_of_app", "password: correct",
	} {
		if found := Default().Find([]byte(text)); len(found) > 0 {
			t.Errorf("%s: %v", text, found)
		}
	}
}

// A second pass over a masked text finds nothing.
func FuzzMaskOfAMask(f *testing.F) {
	for name := range samples {
		for _, s := range samples[name] {
			f.Add(s[0]+s[1]+s[2], s[1])
			f.Add(percent(s[0]+s[1]+s[2], false), percent(s[1], true))
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		text := []byte(a + b + a)
		masked, found := Default().Mask(text)
		at := 0
		for _, x := range found {
			if x.Start < at || x.End <= x.Start || x.End > len(text) {
				t.Fatalf("finding %v of %q", x, text)
			}
			at = x.End
		}
		if len(found) == 0 && string(masked) != string(text) {
			t.Fatalf("%q became %q", text, masked)
		}
		if again := Default().Find(masked); len(again) > 0 {
			t.Fatalf("%q became %q with %v", text, masked, again)
		}
	})
}

// A secret in the middle of a word is found if masks of its neighbors would uncover it.
func TestGluedSecrets(t *testing.T) {
	token := sample(alnum, 14) + ".atlas" + "v1." + sample(alnum, 70)
	scanner, err := New(append(Rules(), Rule{Name: "inner", Pattern: `kkk[0-9]{4}`, Keywords: []string{"kkk"}},
		Rule{Name: "whole", Pattern: `\bwww[0-9]{4}\b`, Keywords: []string{"www"}})...)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		token + token + token:                                        3,
		"www1234kkk1234":                                             2,
		"kkk1234www1234":                                             2,
		"kkk1234www1234kkk1234":                                      3,
		"www1234kkk1234www1234kkk1234www1234":                        5,
		token + "www1234" + "kkk1234" + token:                        4,
		strings.Repeat(token, 200):                                   200,
		strings.Repeat("www1234kkk1234", 300):                        600,
		"www1234" + strings.Repeat("x", 2*aside) + " www1234kkk1234": 2,
		strings.Repeat("x", 2*aside) + "www1234kkk1234":              1,
	} {
		masked, found := scanner.Mask([]byte("a " + text + " b"))
		if again := scanner.Find(masked); len(again) > 0 || len(found) != want {
			t.Errorf("%d found in %.100q, want %d; then %v", len(found), text, want, again)
		}
	}
}

// Keys that are cut off are found one by one: the search for the end of a key does not
// pass the next one.
func TestKeysThatAreCutOff(t *testing.T) {
	cut := "-----BEGIN RSA PRIVATE" + " KEY-----\n" + sample(base64s, 64) + "\n" + sample(base64s, 64) + "\n-----EN\n"
	whole := pem("RSA PRIVATE"+" KEY", "\n", 4)
	encrypted := strings.Replace(whole, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n", 1)
	text := strings.Repeat(cut, 3) + encrypted + "\nand\n" + whole
	found := Default().Find([]byte(text))
	if len(found) != 5 || text[found[3].Start:found[3].End] != encrypted || text[found[4].Start:found[4].End] != whole {
		t.Errorf("%d keys: %v", len(found), found)
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	good := Rule{Name: "a", Pattern: "k[0-9]+", Keywords: []string{"k"}}
	for what, change := range map[string]func(*Rule){
		"name": func(r *Rule) { r.Name = "A b" }, "no keyword": func(r *Rule) { r.Keywords = nil }, "keyword": func(r *Rule) { r.Keywords = []string{"K"} },
		"pattern": func(r *Rule) { r.Pattern = "(" }, "allow": func(r *Rule) { r.Allow = []string{"("} }, "reach": func(r *Rule) { r.Reach = 1 << 20 },
	} {
		r := good
		change(&r)
		if _, err := New(r); !errors.Is(err, errInvalidRule) || !strings.Contains(err.Error(), r.Name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	masked := good
	masked.Mask = "other"
	if _, err := New(good, masked); !errors.Is(err, errInvalidRule) {
		t.Errorf("two masks of one name: %v", err)
	}
	if s, err := New(good); err != nil || len(s.Find([]byte("k1 K2"))) != 1 {
		t.Errorf("the rule itself: %v", err)
	}
}

// The keywords are all found, also if one ends inside another.
func TestKeywords(t *testing.T) {
	words := []string{"she", "he", "hers", "his", "e", "s_h"}
	var rules []Rule
	for _, w := range words {
		rules = append(rules, Rule{Keywords: []string{w}})
	}
	k := newKeywords(rules)
	text := "uSHers_his shE, hehe s_HIS π she"
	got := map[[2]int]bool{}
	k.each([]byte(text), func(rule, at int) { got[[2]int{rule, at}] = true })
	n := 0
	for i, w := range words {
		for _, m := range regexp.MustCompile("(?i)"+w).FindAllStringIndex(text, -1) {
			if n++; !got[[2]int{i, m[0]}] {
				t.Errorf("%s at %d is not found", w, m[0])
			}
		}
	}
	if n != len(got) || k.in([]byte("nothing at all"[:3])) {
		t.Errorf("%d keywords found, want %d", len(got), n)
	}
}
