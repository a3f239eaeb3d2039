"""python3 verify.py FILE.jsonl...: checks sessions of a jsonl store against docs/FORMAT.md, sharing no code with the log."""
import functools, hashlib, json, os, re, sys
LINE = re.compile(r'''\{"crc":"[\da-f]{8}",(?P<header>"v":1,"seq":(?P<seq>[1-9]\d*),"id":"[0-7][\dA-HJKMNP-TV-Z]{25}","session_id":TEXT,"type":TEXT,
    "timestamp":"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{9}Z"(,"cost":(?!0,)(0|[1-9]\d*)(\.\d{0,8}[1-9])?)?(,"more":(?P<more>[1-9]\d*))?
    (,"cut":\{"bytes":[1-9]\d*,"sha256":"[\da-f]{64}"\})?)(,"salt":"(?P<salt>[\da-f]{32})")?,"hash":"(?P<hash>[\da-f]{64})"(,"blobs":\[[^]]+\])?'''
    .replace('\n    ', '').replace('TEXT', r'"(?:[^"\\\x00-\x1f\x7f-\x9f]|\\["\\])+"'), re.A)
PAYLOAD = re.compile(r',("data":|"digest":"sha256:(?P<digest>[\da-f]{64})","bytes":(?P<bytes>\d+)\}\Z|"commit":"(?P<commit>[\da-f]{64})","kept":\{)', re.A)
KNOWN = 'crc v seq id session_id type timestamp cost more cut salt hash blobs metadata data digest bytes commit kept'.split()
TABLE = [functools.reduce(lambda c, _: c >> 1 ^ (c & 1) * 0x82F63B78, range(8), n) for n in range(256)]  # CRC-32C
def H(*parts): return hashlib.sha256(b''.join(parts)).digest()
def need(holds, what):
    if not holds: raise ValueError(what)
DECODE = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=lambda name: need(False, name),
    object_pairs_hook=lambda pairs: need(len(dict(pairs)) == len(pairs), 'a name occurs twice') or dict(pairs))
def parse(raw):  # a line's members, and as link what the chain takes of it
    crc, text = functools.reduce(lambda c, b: TABLE[(c ^ b) & 255] ^ c >> 8, raw[18:], 0xFFFFFFFF), raw.decode()
    need(raw[8:16] == b'%08x' % (crc ^ 0xFFFFFFFF), 'crc does not match')
    e, m = DECODE.decode(text), LINE.match(text)
    need(m and not re.search(r'[ \t\r]', re.sub(r'"(?:[^"\\]|\\.)*"', '', text)), 'not in canonical form')
    at, blobs = m.end(), e.get('blobs', [])
    while not (p := PAYLOAD.match(text, at)):  # over metadata and unknown members
        name, colon = DECODE.raw_decode(text, at + 1)
        need(name not in KNOWN or name == 'metadata' and at == m.end() and type(e[name]) is dict, 'misplaced member ' + name)
        at = DECODE.raw_decode(text, colon + 1)[1]
    data, meta = text[p.end():-1].encode(), text[m.end() + 1:at].encode()
    need(blobs == sorted({*blobs, *filter(None, [e.get('digest')])}) and (not (m['salt'] or meta or blobs) if p['commit'] else m['salt']), 'bad envelope')
    commit = p['commit'] or H(bytes.fromhex(m['salt']), H(meta), bytes.fromhex(p['digest'] or H(data).hex())).hex()
    return dict(e, seq=int(m['seq']), more=int(m['more'] or 0), link=H(m['header'].encode()) + bytes.fromhex(commit), raw=p['commit'] and b'{' + data + b'\n', content=e.get('data', e.get('kept')))
def path_of(session, folder):
    device = re.match(r'(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)', session)
    name = ''.join(chr(b) if re.match(r'[a-z0-9_-]', chr(b)) and not (device and i == 0) or i and b == 46 else '%%%02x' % b for i, b in enumerate(session.encode()))
    return os.path.join(folder, (name if len(name) <= 180 else re.sub('%.?$', '', name[:147]) + '~' + H(session.encode()).hex()[:32]) + '.jsonl')
def parent_of(first): return first.get('data', first.get('kept'))['parent']
def hash_at(session, seq, folder):  # of a lineage's event, in the session's own file or its parents'
    with open(path_of(session, folder), 'rb') as f: own = f.read().decode(errors='replace').split('\n')
    return DECODE.decode(own[at])['hash'] if (at := seq - int(LINE.match(own[0])['seq'])) >= 0 else hash_at(parent_of(DECODE.decode(own[0])), seq, folder)
def verify(path):
    lines = (content := open(path, 'rb').read()).partition(b'\0')[0].split(b'\n')  # no writer writes NUL: it is a hole of an unfinished write
    folder, defects, done, seq, prev, more, bare, notes, first = os.path.dirname(path), [], 0, 1, '0' * 64, 0, {}, [], 1
    for n, raw in enumerate(lines[:-1], 1):
        e = None
        try:
            e = parse(raw)
            bodies = {d: open(os.path.join(folder, 'blobs', d[7:9], d[7:]), 'rb').read() for d in e.get('blobs', [])}
            need(all(d == 'sha256:' + H(body).hex() for d, body in bodies.items()) and len(bodies.get(e.get('digest'), '')) == int(e.get('bytes', 0)), 'bad blob')
            if n == 1 and e['type'] == 'session_forked':
                seq, prev = int(e['content']['seq']) + 1, e['content']['hash']
                need(seq == 1 or hash_at(parent_of(e), seq - 1, folder) == prev, 'the parent has another hash at the fork point')
            first = seq if n == 1 else first
            need(os.path.basename(path_of(e['session_id'], folder)) == os.path.basename(path), 'of another session')
            need(e['seq'] == seq and (not more or e['more'] == more - 1), f"seq {e['seq']} with more {e['more']} after seq {seq - 1} with {more}")
            need(prev is None or H(bytes.fromhex(prev) + e['link']).hex() == e['hash'], 'the hash chain breaks')
        except Exception as err: defects.append((n, str(err)))
        seq, prev, more, done = (e['seq'] + 1, e['hash'], e['more'], done if e['more'] else n) if e else (seq + 1, None, None, done)
        bare, notes = bare | ({str(e['seq']): (n, e['raw'])} if e and 'commit' in e else {}), notes + ([(n, e['content'])] if e and e['type'] == 'redacted' else [])
    torn = content[sum(len(raw) + 1 for raw in lines[:done]):]  # damage, if it is long or ends like a finished write
    bad = len(torn) > 4 << 20 or bool(torn.strip()) and torn.endswith(b'\n') and (b'\0' in torn or not e or not e['more'])
    defects += [(n, 'the kept members were changed') for n, note in notes if 'kept' in note and all(s in bare or int(s) < first for s in note['seqs']) and note['kept'] != 'sha256:' + H(*[bare[s][1] for s in note['seqs'] if s in bare]).hex()]
    defects += [(n, 'redacted, but no event says so') for s, (n, _) in bare.items() if all(s not in note['seqs'] for _, note in notes)] + [(done, 'damage or a hole follows')] * bad
    print('\n'.join(defects := [f'{path}:line {n}: {what}' for n, what in sorted(defects) if n <= done]) or f'{path}: {done} events ok' + f', torn tail of {len(torn)} bytes' * bool(torn))
    return not defects
sys.exit(not all([verify(path) for path in sys.argv[1:]]))
