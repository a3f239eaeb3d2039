package projection

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// encodedHistory has every kind of item and every member.
const encodedHistory = `{"items":[["m",1,{"role":"user","parts":[{"type":"text","text":"a \"b\" \u00e9"}]}],["M",2,{"role":"assistant"}],["c",3,{}],["f",4],["l",9,{"role":"user"},5,8]],"executions":[["x",6,{"call_id":"x","n":[1,2.5,null,true]}]],"cleared":{"x":7},"usage":{"input_tokens":3},"since":4}`

// The cursor accepts nothing that the decoder refuses, and gives the same history: of a body
// with every kind of item, and of the same body with any changes.
func TestHistoryReadEqualsADecoder(t *testing.T) {
	var whole historyBody
	if !whole.read(jsontext.Value(encodedHistory)) {
		t.Fatal("the body is not read in one pass")
	}
	random := rand.New(rand.NewPCG(1, 2))
	const bytes = `{}[],":0123456789-.eEmMcCfFlLx\ ` + "\n\x00\xff"
	read := 0
	for i := range 200_000 {
		body := []byte(encodedHistory)
		for range min(i, 1+random.IntN(3)) {
			at := random.IntN(len(body))
			switch random.IntN(4) {
			case 0:
				body = append(body[:at], body[at+1:]...)
			case 1:
				body = append(body[:at], append([]byte{bytes[random.IntN(len(bytes))]}, body[at:]...)...)
			case 2:
				to := min(len(body), at+random.IntN(40))
				body = append(body[:at:at], append(append([]byte{}, body[at:to]...), body[at:]...)...)
			default:
				body[at] = bytes[random.IntN(len(bytes))]
			}
		}
		var fast, slow historyBody
		if !fast.read(body) {
			continue
		}
		read++
		if err := readState(body, &slow); err != nil {
			t.Fatalf("%v, of a body that the cursor read: %s", err, body)
		}
		if !reflect.DeepEqual(fast, slow) {
			t.Fatalf("the cursor read %+v, a decoder %+v: %s", fast, slow, body)
		}
	}
	if read < 1000 {
		t.Errorf("the cursor read %d bodies", read)
	}
}
