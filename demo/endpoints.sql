-- The demo replaces RECEIVER with an address of this machine.
SELECT awty_http.schedule('http://RECEIVER/stock', every => '2 s', jitter => '0', labels => '{shop}', description => 'answers each time');
SELECT awty_http.schedule('http://RECEIVER/carrier', every => '6 s', jitter => '0', labels => '{shop}', timeout => '1 s',
    retries => '{"first_delay": "1 s"}', description => 'fails, hangs or hangs up now and then');
SELECT awty_http.schedule('http://RECEIVER/invoices', every => '5 s', jitter => '0', labels => '{shop}', description => 'is not there');
