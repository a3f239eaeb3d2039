package secrets

// The forms of the tokens (prefixes, alphabets, lengths) are facts from the rule set of
// gitleaks, https://github.com/gitleaks/gitleaks, config/gitleaks.toml, and from the
// documentation of the services. The expressions are our own. RulesSource has the day of
// the comparison with that file; TestRuleSet counts the rules. They are part of the program, and
// not fetched, so a scan needs no network and gives the same result tomorrow.

// RulesSource is the day of the last change of Rules, and the rule set that they were compared
// with, with its version.
const RulesSource = "2026-11-22, compared with gitleaks (MIT licence), config/gitleaks.toml of commit b58d3f102cf3 of 2026-07-22"

// Rules returns the rule set that Default uses. A caller may change the copy, and give
// it to New.
func Rules() []Rule {
	var all []Rule
	for _, some := range [][]Rule{keyRules(), cloudRules(), codeRules(), modelRules(), serviceRules(), looseRules()} {
		all = append(all, some...)
	}
	return all
}

// maxReach bounds Rule.Reach: a private key of 8,192 bits needs about 7,000 bytes.
const maxReach = 16 << 10

// placeholder matches texts that documentation writes instead of a secret.
const placeholder = `(?i)example|placeholder|your[_-]|dummy|sample|redacted|changeme|xxxx|\.\.\.|\*\*\*\*|00000000|12345678|abcdefgh|deadbeef`

func keyRules() []Rule {
	return []Rule{
		// The lines of a key may be separated by newlines, or by \n in a string of a program
		// or of JSON. A key that is cut off has no end. Two hyphens end the body: otherwise
		// the search for the end of each of many cut keys would read the rest of the text.
		{
			Name: "private-key", Finds: "private keys in PEM: RSA, EC, OpenSSH, PKCS 8, PGP", Keywords: []string{"-----begin"}, Reach: maxReach,
			Pattern: `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?:[A-Za-z0-9+/=,:.()\s\\]|-[A-Za-z0-9]){64,}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]{64,})`,
			Allow:   []string{`(?i)x{16}|\.\.\.`},
		},
		{
			Name: "age-secret-key", Finds: "secret keys of age", Keywords: []string{"age-secret-key-1"},
			Pattern: `\bAGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}\b`,
		},
		{Name: "nats-seed", Finds: "seeds of NATS keys (nkeys)", Keywords: []string{"saa", "sca", "sna", "soa", "sua", "sxa"}, Entropy: 3, Match: natsSeed},
		{
			Name: "jwt", Finds: "JSON Web Tokens", Keywords: []string{"eyj"}, Reach: 8 << 10, Entropy: 3,
			Pattern: `\beyJ[A-Za-z0-9_-]{14,}\.eyJ[A-Za-z0-9_-]{14,}(?:\.[A-Za-z0-9_-]{10,})?`,
		},
	}
}

// natsSeed finds a seed at a keyword: 58 characters of base32. The first three say what the key
// is for.
func natsSeed(text []byte, at int) (start, end int) {
	const length = 58
	end = at + length
	if end > len(text) || text[at] != 'S' || at > 0 && isWord(text[at-1]) || end < len(text) && isWord(text[end]) {
		return 0, 0
	}
	for _, c := range text[at:end] {
		if (c < 'A' || 'Z' < c) && (c < '2' || '7' < c) {
			return 0, 0
		}
	}
	return at, end
}

func cloudRules() []Rule {
	return []Rule{
		{
			Name: "aws-access-key", Finds: "ids of AWS access keys", Keywords: []string{"akia", "asia", "abia", "acca", "a3t"}, Entropy: 3,
			Pattern: `\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`, Allow: []string{`EXAMPLE`},
		},
		{
			Name: "aws-secret-key", Finds: "AWS secret access keys", Keywords: []string{"aws", "secret_access_key", "secretaccesskey"}, Entropy: 4.2,
			Pattern: `(?i:aws[\w.-]{0,20}(?:secret|key|token)[\w.-]{0,20}|secret_?access_?key)["'\x60\\]{0,4}\s{0,3}(?:=>|:=|=|:)\s{0,3}["'\x60\\]{0,3}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`,
			Allow:   []string{`EXAMPLEKEY`},
		},
		{
			Name: "aws-bedrock-key", Finds: "API keys of Amazon Bedrock", Keywords: []string{"absk", "bedrock-api-key-"},
			Pattern: `\bABSK[A-Za-z0-9+/]{109,}={0,2}|\bbedrock-api-key-[A-Za-z0-9+/=]{20,}`,
		},
		{Name: "gcp-api-key", Finds: "API keys of Google", Keywords: []string{"aiza"}, Entropy: 3.5, Pattern: `\bAIza[\w-]{35}\b`},
		{Name: "gcp-oauth-token", Finds: "access tokens of Google", Keywords: []string{"ya29."}, Entropy: 3.5, Pattern: `\bya29\.[\w-]{30,}`},
		{Name: "gcp-oauth-secret", Finds: "client secrets of Google", Keywords: []string{"gocspx-"}, Pattern: `\bGOCSPX-[\w-]{28,}`},
		{
			Name: "azure-client-secret", Finds: "client secrets of Azure", Keywords: []string{"q~"}, Entropy: 3.5,
			Pattern: `(?:^|[\\'"\x60\s>=:(,])([\w~.]{3}\dQ~[\w~.-]{31,34})(?:$|[\\'"\x60\s<),;])`,
		},
		{
			Name: "azure-storage-key", Finds: "account keys of Azure Storage", Keywords: []string{"accountkey="}, Entropy: 4,
			Pattern: `(?i:AccountKey)=([A-Za-z0-9+/]{86}==)`,
		},
		{Name: "digitalocean-token", Finds: "tokens of DigitalOcean", Keywords: []string{"doo_v1_", "dop_v1_", "dor_v1_"}, Pattern: `\bdo[opr]_v1_[a-f0-9]{64}\b`},
		{Name: "fly-token", Finds: "access tokens of Fly.io", Keywords: []string{"fo1_", "fm1a_", "fm1r_", "fm2_"}, Reach: 4 << 10, Entropy: 4, Pattern: `\b(?:fo1_[\w-]{43}\b|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3})`},
		{Name: "heroku-key", Finds: "API keys of Heroku", Keywords: []string{"hrku-aa"}, Pattern: `\bHRKU-AA[\w-]{58,}`},
		{Name: "databricks-token", Finds: "tokens of Databricks", Keywords: []string{"dapi"}, Entropy: 3, Pattern: `\bdapi[a-f0-9]{32}(?:-\d)?\b`},
		{Name: "vault-token", Finds: "tokens of HashiCorp Vault", Keywords: []string{"hvs.", "hvb."}, Entropy: 3.5, Pattern: `\bhv[sb]\.[\w-]{90,}`},
		{Name: "terraform-token", Finds: "tokens of Terraform Cloud", Keywords: []string{"atlasv1"}, Entropy: 3.5, Pattern: `\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}`},
		{Name: "pulumi-token", Finds: "tokens of Pulumi", Keywords: []string{"pul-"}, Entropy: 3, Pattern: `\bpul-[a-f0-9]{40}\b`},
		{Name: "planetscale-token", Finds: "tokens and passwords of PlanetScale", Keywords: []string{"pscale_"}, Entropy: 3, Pattern: `\bpscale_(?:tkn|oauth|pw)_[\w=.-]{32,64}`},
		{Name: "doppler-token", Finds: "tokens of Doppler", Keywords: []string{"dp.pt.", "dp.st."}, Entropy: 3, Pattern: `\bdp\.(?:pt|st)\.[\w.-]{40,80}`},
		{Name: "onepassword-token", Finds: "tokens of 1Password service accounts", Keywords: []string{"ops_eyj"}, Reach: 4 << 10, Pattern: `\bops_eyJ[A-Za-z0-9+/]{250,}={0,3}`},
		{Name: "cloudflare-origin-key", Finds: "origin CA keys of Cloudflare", Keywords: []string{"v1.0-"}, Pattern: `\bv1\.0-[a-f0-9]{24}-[a-f0-9]{146}\b`},
	}
}

func codeRules() []Rule {
	return []Rule{
		{Name: "github-token", Finds: "tokens of GitHub: personal, OAuth, app, refresh", Keywords: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, Entropy: 3, Pattern: `\bgh[pousr]_[0-9A-Za-z]{36,}`},
		{Name: "github-fine-grained-token", Finds: "fine-grained personal access tokens of GitHub", Keywords: []string{"github_pat_"}, Entropy: 3, Pattern: `\bgithub_pat_\w{82,}`},
		{
			Name: "gitlab-token", Finds: "tokens of GitLab", Keywords: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glsoat-", "glagent-", "gloas-", "glimt-"}, Entropy: 3,
			Pattern: `\bgl(?:pat|dt|rt|ptt|cbt|ft|soat|agent|oas|imt)-[\w.-]{20,}`,
		},
		{Name: "bitbucket-token", Finds: "tokens of Atlassian", Keywords: []string{"atatt3", "atbb"}, Entropy: 3.5, Pattern: `\bATATT3[\w=-]{180,}|\bATBB[A-Za-z0-9]{32}\b`},
		{Name: "npm-token", Finds: "access tokens of npm", Keywords: []string{"npm_"}, Entropy: 3, Pattern: `\bnpm_[A-Za-z0-9]{36}\b`},
		{Name: "pypi-token", Finds: "upload tokens of PyPI", Keywords: []string{"pypi-ageichlwas5vcmc"}, Reach: 1200, Pattern: `\bpypi-AgEIcHlwaS5vcmc[\w-]{50,}`},
		{Name: "rubygems-token", Finds: "tokens of RubyGems", Keywords: []string{"rubygems_"}, Entropy: 3, Pattern: `\brubygems_[a-f0-9]{48}\b`},
		{Name: "docker-token", Finds: "access tokens of Docker Hub", Keywords: []string{"dckr_"}, Entropy: 3, Pattern: `\bdckr_(?:pat|oat)_[\w-]{27,40}`},
		{Name: "artifactory-token", Finds: "keys of Artifactory", Keywords: []string{"akcp", "cmvmd"}, Entropy: 4.5, Pattern: `\b(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})\b`},
		{Name: "sentry-token", Finds: "tokens of Sentry", Keywords: []string{"sntrys_", "sntryu_"}, Entropy: 3.5, Pattern: `\bsntryu_[a-f0-9]{64}\b|\bsntrys_eyJ[A-Za-z0-9+/=_]{60,}`},
		{Name: "grafana-token", Finds: "tokens of Grafana", Keywords: []string{"glc_", "glsa_"}, Entropy: 3, Pattern: `\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b|\bglc_[A-Za-z0-9+/]{32,}={0,3}`},
		{Name: "linear-token", Finds: "API keys of Linear", Keywords: []string{"lin_api_"}, Entropy: 3, Pattern: `\blin_api_[A-Za-z0-9]{40}\b`},
		{Name: "postman-token", Finds: "API keys of Postman", Keywords: []string{"pmak-"}, Entropy: 3, Pattern: `\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b`},
	}
}

func modelRules() []Rule {
	return []Rule{
		{Name: "anthropic-key", Finds: "API keys of Anthropic", Keywords: []string{"sk-ant-"}, Entropy: 3, Pattern: `\bsk-ant-(?:api|admin|oat|ort)\d\d-[\w-]{60,}`},
		{
			Name: "openai-key", Finds: "API keys of OpenAI", Keywords: []string{"t3blbkfj", "sk-proj-", "sk-svcacct-", "sk-admin-"}, Entropy: 3,
			Pattern: `\bsk-(?:proj|svcacct|admin)-[\w-]{40,}|\bsk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}\b`,
		},
		{Name: "openrouter-key", Finds: "API keys of OpenRouter", Keywords: []string{"sk-or-v1-"}, Entropy: 3, Pattern: `\bsk-or-v1-[a-f0-9]{64}\b`},
		{Name: "huggingface-token", Finds: "tokens of Hugging Face", Keywords: []string{"hf_", "api_org_"}, Entropy: 3, Pattern: `\b(?:hf|api_org)_[A-Za-z]{34}\b`},
		{Name: "perplexity-key", Finds: "API keys of Perplexity", Keywords: []string{"pplx-"}, Entropy: 3.5, Pattern: `\bpplx-[A-Za-z0-9]{48}\b`},
		{Name: "groq-key", Finds: "API keys of Groq", Keywords: []string{"gsk_"}, Entropy: 3.5, Pattern: `\bgsk_[A-Za-z0-9]{52}\b`},
		{Name: "xai-key", Finds: "API keys of xAI", Keywords: []string{"xai-"}, Entropy: 3.5, Pattern: `\bxai-[A-Za-z0-9]{80}\b`},
	}
}

func serviceRules() []Rule {
	return []Rule{
		{
			Name: "slack-token", Finds: "tokens of Slack", Keywords: []string{"xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xox", "xapp-"}, Entropy: 2.5,
			Pattern: `\bxox[abeoprs](?:\.xox[bp])?-\d[\w-]{15,}|\bxapp-\d-[A-Za-z0-9]+-\d+-[A-Za-z0-9]{30,}`,
		},
		{Name: "slack-webhook", Finds: "webhooks of Slack", Keywords: []string{"hooks.slack.com/"}, Pattern: `\bhooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,60})`},
		{Name: "stripe-key", Finds: "secret keys of Stripe", Keywords: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_", "whsec_"}, Entropy: 3, Pattern: `\b(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{32,64})`},
		{Name: "square-token", Finds: "access tokens of Square", Keywords: []string{"sq0atp-", "sq0csp-"}, Entropy: 3, Pattern: `\bsq0(?:atp|csp)-[\w-]{22,60}`},
		{Name: "shopify-token", Finds: "tokens of Shopify", Keywords: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, Entropy: 2.5, Pattern: `\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b`},
		{Name: "sendgrid-key", Finds: "API keys of SendGrid", Keywords: []string{"sg."}, Entropy: 3.5, Pattern: `\bSG\.[\w-]{22}\.[\w-]{43}\b`},
		{Name: "twilio-key", Finds: "API keys of Twilio", Keywords: []string{"twilio"}, Entropy: 3, Pattern: `(?i:twilio)[^\n]{0,80}?\b(SK[0-9a-f]{32})\b`},
		{Name: "mailgun-key", Finds: "API keys of Mailgun", Keywords: []string{"mailgun"}, Entropy: 3, Pattern: `(?i:mailgun)[^\n]{0,80}?\b(key-[a-f0-9]{32})\b`},
		{Name: "telegram-token", Finds: "tokens of Telegram bots", Keywords: []string{"telegr"}, Entropy: 3, Pattern: `(?i:telegr)[^\n]{0,80}?\b(\d{8,12}:A[\w-]{34})\b`},
		{Name: "discord-webhook", Finds: "webhooks of Discord", Keywords: []string{"/api/webhooks/"}, Entropy: 3, Pattern: `\bdiscord(?:app)?\.com/api/webhooks/(\d{15,21}/[\w-]{60,80})`},
		{Name: "notion-token", Finds: "tokens of Notion", Keywords: []string{"ntn_"}, Entropy: 3.5, Pattern: `\bntn_[0-9]{11}[A-Za-z0-9]{35}\b`},
	}
}

// wordsForPasswords matches words that documentation and tests write in the place of a password.
const wordsForPasswords = `(?i)^'?(?:pass|password|passwd|secret|token|user|username|postgres|mysql|root|guest|admin)'?$`

// dsnPassword matches the value of a password in a connection string of libpq.
const dsnPassword = `('[^'\n\\]{5,100}'|[^\s'"\x60\\<>(){}\[\]$]{5,})`

// looseRules find secrets by the words before them. They need entropy and allow-lists,
// and come last: a rule for a service names the secret better.
func looseRules() []Rule {
	return []Rule{
		{
			Name: "url-password", Finds: "passwords in URLs", Keywords: []string{"://"}, Reach: 1024, Entropy: 2.5,
			Pattern: `\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'\x60<>\\\[\](){}]{0,100}:([^\s/:@"'\x60<>\\\[\](){}$*]{5,})@[A-Za-z0-9\[]`,
			Allow:   []string{placeholder, wordsForPasswords},
		},
		{
			Name: "dsn-password", Finds: "passwords in connection strings, after host, user or database", Keywords: []string{"host", "port=", "dbname=", "user=", "sslmode="}, Reach: 1024, Entropy: 2,
			Pattern: `\b(?i:host|hostaddr|port|dbname|user|sslmode)=[^\s'"\\]{1,100}[ \t]+(?:\w{2,30}=[^\s'"\\]{1,100}[ \t]+){0,8}(?i:password)=` + dsnPassword,
			Allow:   []string{placeholder, wordsForPasswords},
		},
		{
			Name: "dsn-first-password", Finds: "passwords in connection strings, before host, user or database", Keywords: []string{"password="}, Reach: 1024, Entropy: 2,
			Pattern: `\b(?i:password)=` + dsnPassword + `[ \t]+(?:\w{2,30}=[^\s'"\\]{1,100}[ \t]+){0,8}(?i:host|hostaddr|port|dbname|user|sslmode)=`,
			Allow:   []string{placeholder, wordsForPasswords},
		},
		{
			Name: "authorization-header", Finds: "credentials in Authorization headers", Keywords: []string{"authorization"}, Reach: 2 << 10, Entropy: 3.3,
			Pattern: `(?i:authorization)["'\\]{0,4}\s{0,3}[:=]\s{0,3}["'\x60\\]{0,3}(?i:bearer|basic|token)\s{1,3}([A-Za-z0-9._~+/-]{16,}={0,2})`,
			Allow:   []string{placeholder, `^[A-Za-z_.-]+$`},
		},
		{
			Name: "generic-password", Finds: "passwords in assignments", Keywords: []string{"passw", "passphrase"}, Reach: 1024, Entropy: 3,
			Pattern: `(?i:passw(?:or)?d|passphrase)[\w.-]{0,20}["'\x60\\]{0,4}\s{0,3}(?:=>|:=|=|:)\s{0,3}\\{0,3}["'\x60]?([^\s"'\x60\\<>(){}\[\],;$|&]{8,})`,
			Allow:   []string{placeholder, `^[^0-9]*$`, `^[^A-Za-z]*$`, `^[A-Za-z_]\w*(?:[.:/]\w+)+`, `(?i)passw|secret|process\.env|getenv`},
		},
		{
			Name: "generic-secret", Finds: "API keys, tokens and client secrets in assignments", Entropy: 3.5,
			Keywords: []string{"api_key", "apikey", "api-key", "access_key", "accesskey", "access-key", "auth_token", "authtoken", "auth-token", "access_token", "accesstoken", "access-token", "refresh_token", "refreshtoken", "refresh-token", "secret"},
			Pattern: `(?i:api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|client[_-]?secret|secret(?:[_-]?(?:key|token|access[_-]?key))?)(?:[_-]\w{1,20})?["'\x60\\]{0,4}\s{0,3}(?:=>|:=|=|:)\s{0,3}\\{0,3}["'\x60]?` +
				`([A-Za-z0-9_.~+/=-]{16,})`,
			Allow: []string{placeholder, `^[^0-9]*$`, `^[^A-Za-z]*$`, `^[A-Za-z_]\w*(?:[./]\w+)+$`, `^[/.~]`},
		},
	}
}
