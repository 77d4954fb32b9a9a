package script

import "testing"

// What writes below the submission, or more than a mount holds.
func TestWriteFaults(t *testing.T) {
	before := func(text string) folder { return altered("exec python3", text+"\nexec python3") }
	fault := func(name, text, says string) vector {
		return vector{name: name, folder: before(text), check: "C20", line: 8, says: says}
	}
	runVectors(t, []vector{
		fault("sed", "sed -i 's/a/b/' server.py", "sed -i writes server.py"),
		fault("tar", "tar -C weights -xf /tmp/a.tar", "tar writes weights"),
		fault("tar here", "tar xzf /tmp/a.tar", "tar writes"),
		fault("unzip", "unzip -q /tmp/a.zip -d models", "unzip writes models"),
		{name: "python", folder: before(`python3 -c "open('state','w').write('x')"`), check: "C20", line: 8, says: "writes state", warning: true},
		fault("dd", "dd if=/dev/zero of=/dev/shm/a bs=1M count=100", "dd writes"),
		fault("fallocate", "fallocate -l 1G /dev/shm/a", "fallocate writes 1.1 GB"),
		fault("truncate", "truncate --size=100M /dev/shm/a", "truncate writes"),
		{name: "open", folder: server("\nf = open('server.log', mode='a')\n"), check: "C20", line: 11, says: "writes server.log", warning: true},
		{name: "beside", folder: server("\nf = open(os.path.join(os.path.dirname(__file__), 'log'), 'w')\n"), check: "C20", line: 11, says: "beside itself", warning: true},
		{name: "makedirs", folder: server("\nos.makedirs('cache/x', exist_ok=True)\n"), check: "C20", line: 11, says: "writes cache/x", warning: true},
		{name: "log", folder: server("\nh = logging.FileHandler('x.log')\n"), check: "C20", line: 11, says: "writes x.log", warning: true},
		{name: "log's settings", folder: server("\nlogging.basicConfig(filename='x.log')\n"), check: "C20", line: 11, says: "writes x.log", warning: true},
	})
	runClean(t, map[string]folder{
		"sed":      before("sed -n 1p server.py\nsed -e s/i/j/ server.py"),
		"tar":      before("mkdir -p /tmp/x\ntar -C /tmp/x -xf /tmp/a.tar\ntar -tf weights/model.safetensors"),
		"unpacked": before("mkdir -p /tmp/x\ntar -C /tmp/x -xf /tmp/a.tar\nunzip -q /tmp/a.zip -d /tmp/y\n/tmp/x/bin/prepare\ncd /tmp/y/z\ncd /submission"),
		"python":   before(`python3 -c "print(open('server.py').read())"`),
		"dd":       before("dd if=/dev/zero of=/dev/shm/a bs=1M count=1"),
		"truncate": before("truncate -s 100M /tmp/a"),
		"read":     server("f = open('server.py')\ng = open('weights/x', 'rb')\nos.makedirs('/tmp/cache')\nh = open(args.log, 'w')\n"),
	})
}
